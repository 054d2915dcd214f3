"""Small numerical helpers that every floor uses."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ._types import ArrayLike


def relative_error(measured: Float[Array, "*shape"], reference: Float[Array, "*shape"]) -> Float[Array, ""]:
    """Relative error in the Frobenius norm, `‖measured − reference‖ / ‖reference‖`.

    The norm runs over all axes. The result is NaN where either side is not finite, or where both are zero:
    agreement of two zeros proves nothing.

    >>> float(relative_error(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.5]))) < 0.19
    True
    """
    if measured.shape != reference.shape:
        raise ValueError(
            f"relative_error compares arrays of one shape; got {measured.shape} and {reference.shape}. "
            "Reshape one of them: broadcasting would hide a missing axis."
        )
    scale = jnp.maximum(jnp.max(jnp.abs(reference), initial=0.0), jnp.finfo(reference.dtype).tiny)
    difference = jnp.linalg.norm(((measured - reference) / scale).ravel())
    return difference / jnp.linalg.norm((reference / scale).ravel())


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
