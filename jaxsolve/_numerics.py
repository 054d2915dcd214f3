"""Small numerical helpers that every floor uses."""

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ._types import ArrayLike


def machine_epsilon(dtype: jax.typing.DTypeLike) -> float:
    """Distance from 1 to the next larger number of ``dtype``.

    >>> machine_epsilon("float64")
    2.220446049250313e-16
    """
    return float(jnp.finfo(dtype).eps)


def violated(
    measured: Float[ArrayLike, "*shape"],
    bound: Float[ArrayLike, "*shape"],
    *,
    relative: float = 0.0,
    absolute: float | Float[ArrayLike, "..."] = 0.0,
) -> Bool[ArrayLike, "*shape"]:
    """Where the inequality `measured ≤ bound + relative |bound| + absolute` does not hold.

    A NaN on either side is a violation: it never compares as true. An infinite bound is vacuous, not violated.

    >>> violated(jnp.array([1.0, jnp.nan, 3.0]), jnp.array([1.0, 2.0, 2.0]))
    Array([False,  True,  True], dtype=bool)
    """
    return ~(measured <= bound + relative * abs(bound) + absolute)
