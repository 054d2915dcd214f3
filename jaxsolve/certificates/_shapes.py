"""What the arguments of a certificate must look like."""

import jax

from .._arguments import check_dtypes


def check_tasks(operators: jax.Array, matrices: dict[str, jax.Array], vectors: dict[str, jax.Array]) -> None:
    """Refuse what is not a batch of square operators, with matrices shared or per task and one vector per task."""
    arrays = {"operators": operators, **matrices, **vectors}
    found = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
    if operators.ndim != 3 or operators.shape[1] != operators.shape[2] or not operators.size:
        raise ValueError(
            f"operators have shape (tasks, size, size), not empty; got {found}. Put a task axis in front of one matrix."
        )
    tasks, size, _ = operators.shape
    for name, matrix in matrices.items():
        if matrix.shape not in ((size, size), (tasks, size, size)):
            raise ValueError(
                f"For {tasks} tasks of size {size}, {name} has shape {(size, size)}, shared, or {(tasks, size, size)}; "
                f"got {found}."
            )
    for name, vector in vectors.items():
        if vector.shape != (tasks, size):
            raise ValueError(
                f"For {tasks} tasks of size {size}, {name} has shape {(tasks, size)}, one row per task; got {found}."
            )
    check_dtypes(**arrays)
