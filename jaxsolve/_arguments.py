"""What arguments of many rooms must look like."""

import operator
from typing import Any

import jax
import jax.numpy as jnp


def checked_depth(depth: Any) -> int:
    """``depth`` as an integer of at least zero, else a ``ValueError``."""
    try:
        steps = -1 if isinstance(depth, bool) else operator.index(depth)
    except TypeError:
        steps = -1
    if steps < 0:
        raise ValueError(
            f"depth counts steps: an integer of at least 0; got {depth!r}. It is part of the program, not data: under "
            "jit make it a static argument."
        )
    return steps


def check_dtypes(**arrays: jax.Array) -> None:
    """Refuse arrays that do not share one floating dtype."""
    if len({array.dtype for array in arrays.values()}) != 1 or not all(
        jnp.issubdtype(array.dtype, jnp.floating) for array in arrays.values()
    ):
        found = ", ".join(f"{name} {array.dtype}" for name, array in arrays.items())
        raise ValueError(f"All arrays share one floating dtype; got {found}. Cast them to float32 or float64.")
