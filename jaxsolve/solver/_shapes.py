"""What the arguments of an iteration must look like."""

import operator
from typing import Any

import equinox as eqx
import jax
from jax.core import Tracer

from .._arguments import check_dtypes


def check_systems(preconditioner: jax.Array, operators: jax.Array, **vectors: jax.Array) -> None:
    """Refuse arrays that are not a batch of square systems in one floating dtype, with one vector per task."""
    found = _shapes(preconditioner=preconditioner, operators=operators, **vectors)
    _check_matrices(preconditioner, operators, found)
    tasks, size, _ = operators.shape
    if any(vector.shape != (tasks, size) for vector in vectors.values()):
        raise ValueError(
            f"{tasks} tasks of size {size} take vectors of shape {(tasks, size)}, one row per task; got {found}. "
            "Map over further right-hand sides of one task with jax.vmap."
        )
    check_dtypes(preconditioner=preconditioner, operators=operators, **vectors)


def check_population(preconditioner: jax.Array, operators: jax.Array, second_moment: jax.Array) -> None:
    """Refuse arrays that are not a batch of square matrices in one floating dtype and one second moment for all."""
    found = _shapes(preconditioner=preconditioner, operators=operators, second_moment=second_moment)
    _check_matrices(preconditioner, operators, found)
    tasks, size, _ = operators.shape
    if second_moment.shape != (size, size) or not tasks:
        raise ValueError(
            f"A population has at least one task, and one second moment of shape {(size, size)} for all of them; got "
            f"{found}."
        )
    check_dtypes(preconditioner=preconditioner, operators=operators, second_moment=second_moment)


def _shapes(**arrays):
    return ", ".join(f"{name} {array.shape}" for name, array in arrays.items())


def _check_matrices(preconditioner, operators, found):
    if operators.ndim != 3 or operators.shape[1] != operators.shape[2]:
        raise ValueError(
            f"operators have shape (tasks, size, size); got {found}. Put a task axis in front of one matrix."
        )
    tasks, size, _ = operators.shape
    if preconditioner.shape not in ((size, size), (tasks, size, size)):
        raise ValueError(
            f"A preconditioner for {tasks} tasks of size {size} has shape {(size, size)}, shared, or "
            f"{(tasks, size, size)}; got {found}."
        )


def checked_count(count: Any, name: str) -> int:
    """``count`` as an integer of at least one, else a ``ValueError``."""
    try:
        found = 0 if isinstance(count, bool) else operator.index(count)
    except TypeError:
        found = 0
    if found < 1:
        raise ValueError(f"{name} is an integer of at least 1; got {count!r}. Under jit make it a static argument.")
    return found


def refuse(value: jax.Array, failed: jax.Array, message: str) -> jax.Array:
    """``value``; a ``ValueError`` where ``failed`` is known to hold, an error at run time where it is traced."""
    if isinstance(failed, Tracer):
        return eqx.error_if(value, failed, message)
    if failed:
        raise ValueError(message)
    return value
