"""Powers of the matrices that carry residuals forward and adjoints back, applied to vectors that are rows.

With `r_l = b − H z_l` and the adjoints `λ_l`, one step is a product from the right:

    r_{l+1}ᵀ = r_lᵀ C,    C = I − Pᵀ Hᵀ,
    λ_lᵀ = λ_{l+1}ᵀ M,    M = I − P H.

A ladder is the list of the powers 1, 2, 4, ..., width of a matrix.
"""

from typing import Any

import jax.numpy as jnp

from ._systems import Systems, axes, product


def residual_matrices(systems: Systems) -> Any:
    """`C`, one per task."""
    other = axes(systems.preconditioner).replace("i", "k").replace("j", "i")
    return _identity(systems) - product(f"{other},tjk->tij", systems.preconditioner, systems.operators)


def error_matrices(systems: Systems) -> Any:
    """`M`, one per task."""
    other = axes(systems.preconditioner).replace("j", "k")
    return _identity(systems) - product(f"{other},tkj->tij", systems.preconditioner, systems.operators)


def powers(matrices: Any, width: int) -> list[Any]:
    """The ladder up to `width`, which is a power of two."""
    found = [matrices]
    for _ in range(width.bit_length() - 1):
        found.append(product("tij,tjk->tik", found[-1], found[-1]))
    return found


def advance(rows: Any, matrices: Any) -> Any:
    """Rows `(tasks, size)` or `(tasks, width, size)` times the matrix of their task, from the right."""
    if rows.ndim == 2:
        return advance(rows[:, None, :], matrices)[:, 0]
    return product("tmj,tji->tmi", rows, matrices)


def spread(vectors: Any, ladder: list[Any], *, newest_first: bool = False) -> Any:
    """Rows `v, v B, ..., v B^{width−1}` of each task, or the same in reverse order."""
    rows = vectors[:, None, :]
    for matrices in ladder[:-1]:
        pair = (rows, advance(rows, matrices))
        rows = jnp.concatenate(pair[::-1] if newest_first else pair, axis=1)
    return rows


def sum_of_powers(vectors: Any, ladder: list[Any]) -> Any:
    """`v + v B + ... + v B^{width−1}` of each task."""
    for matrices in ladder[:-1]:
        vectors = vectors + advance(vectors, matrices)
    return vectors


def sums_before(rows: Any) -> Any:
    """For each row, the sum of the rows above it."""
    width = rows.shape[1]
    return product("mk,tkj->tmj", jnp.tri(width, k=-1, dtype=rows.dtype), rows)


def _identity(systems):
    return jnp.eye(systems.initial.shape[1], dtype=systems.initial.dtype)[None]
