"""Assembly of Galerkin matrices as one product and one sum over a fixed routing."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._types import ArrayLike
from ._mesh import TriangleMesh


class GalerkinAssembler(eqx.Module):
    """Matrices that are linear in one coefficient per cell.

    With `K_c` the matrix of cell `c` at coefficient 1 and `R_c` the map from its local to the free unknowns,

        A(a) = Σ_c a_c R_cᵀ K_c R_c.

    The sum runs over a routing that is computed once: contributions are multiplied out for all cells together,
    summed into the entries of the matrix that are not zero by structure, and these are laid into the dense matrix.
    Unknowns that are not free (Dirichlet nodes) drop out.

    Parameters
    ----------
    cell_matrices
        `K_c`, in any dtype; set-up is done in NumPy.
    cells
        Global numbers of the local unknowns of each cell.
    free
        The unknowns to keep, in the order in which they number the rows.
    dtype
        Of the assembled matrices.

    Attributes
    ----------
    cell_matrices
        `K_c` at coefficient 1.
    rows, columns
        Places of the structural non-zeros, in row-major order.
    size
        Number of free unknowns.

    Raises
    ------
    ValueError
        Where the shapes of cell matrices and cells do not fit, for numbers that are negative or free twice, and where
        no unknown is free.
    """

    cell_matrices: Float[Array, "cells local local"]
    rows: Int[Array, " nonzeros"]
    columns: Int[Array, " nonzeros"]
    size: int = eqx.field(static=True)
    _contributions: Int[Array, " routed"]
    _destinations: Int[Array, " routed"]

    def __init__(
        self,
        cell_matrices: Float[ArrayLike, "cells local local"],
        cells: Int[ArrayLike, "cells local"],
        free: Int[ArrayLike, " size"],
        *,
        dtype: jax.typing.DTypeLike = float,
    ):
        matrices, cells, free = np.asarray(cell_matrices), np.asarray(cells), np.asarray(free)
        if cells.ndim != 2 or matrices.shape != (*cells.shape, cells.shape[1]):
            raise ValueError(
                "An assembler takes cell matrices of shape (cells, local, local) and cells of shape (cells, local); "
                f"got {matrices.shape} and {cells.shape}."
            )
        if not free.size:
            raise ValueError("No unknown is free: every node lies on the boundary. Refine the mesh.")
        if min(cells.min(initial=0), free.min()) < 0 or len(np.unique(free)) < len(free):
            raise ValueError(
                "Unknowns are numbered from 0, and each free one is named once; got a negative or repeated one."
            )
        unknowns = numbered(cells, free)
        rows = np.broadcast_to(unknowns[:, :, None], matrices.shape).ravel()
        columns = np.broadcast_to(unknowns[:, None, :], matrices.shape).ravel()
        kept = np.flatnonzero((rows >= 0) & (columns >= 0))
        places, destinations = np.unique(rows[kept] * len(free) + columns[kept], return_inverse=True)
        order = np.argsort(destinations, kind="stable")
        self.cell_matrices = jnp.asarray(matrices, dtype)
        self.rows, self.columns = (jnp.asarray(index) for index in np.divmod(places, len(free)))
        self.size = len(free)
        self._contributions = jnp.asarray(kept[order])
        self._destinations = jnp.asarray(destinations[order])

    def nonzeros(self, coefficient: Float[Array, " cells"]) -> Float[Array, " nonzeros"]:
        """The entries of `A(a)` at ``rows`` and ``columns``.

        Raises
        ------
        ValueError
            Where the coefficient does not have one entry per cell.
        """
        if coefficient.shape != self.cell_matrices.shape[:1]:
            raise ValueError(
                f"A coefficient has one entry for each of the {self.cell_matrices.shape[0]} cells; got shape "
                f"{coefficient.shape}. Use jax.vmap over several coefficients."
            )
        contributions = (coefficient[:, None, None] * self.cell_matrices).ravel()[self._contributions]
        return jax.ops.segment_sum(
            contributions, self._destinations, num_segments=self.rows.shape[0], indices_are_sorted=True
        )

    def assemble(self, coefficient: Float[Array, " cells"]) -> Float[Array, "size size"]:
        """The dense matrix `A(a)`, linear in the coefficient.

        Raises
        ------
        ValueError
            Where the coefficient does not have one entry per cell.
        """
        values = self.nonzeros(coefficient)
        return (
            jnp.zeros((self.size, self.size), values.dtype)
            .at[self.rows, self.columns]
            .set(values, indices_are_sorted=True, unique_indices=True)
        )


def numbered(cells: Int[np.ndarray, "cells local"], free: Int[np.ndarray, " size"]) -> Int[np.ndarray, "cells local"]:
    """The rows of the local unknowns of each cell, `−1` where they are not free."""
    number = np.full(max(cells.max(initial=0), free.max()) + 1, -1)
    number[free] = np.arange(len(free))
    return number[cells]


def stiffness_assembler(mesh: TriangleMesh, *, dtype: jax.typing.DTypeLike = float) -> GalerkinAssembler:
    """Assembler of `−div(a grad u)` on piecewise linear elements, zero on the whole boundary.

    The coefficient is constant on each triangle. With the edge vectors `E` (3, 2) of a triangle `T`, opposite its
    corners, the cell matrix is `K_T = E Eᵀ / (4 |T|)`. Rows follow ``mesh.interior_nodes``.

    Raises
    ------
    ValueError
        Where the mesh has no interior node.

    >>> from jaxsolve.datasets import airfoil_mesh
    >>> assembler = stiffness_assembler(TriangleMesh(*airfoil_mesh()))
    >>> assembler.assemble(jnp.ones(582)).shape
    (260, 260)
    """
    matrices = np.einsum("tik,tjk->tij", mesh.edges, mesh.edges) / (4 * mesh.areas)[:, None, None]
    return GalerkinAssembler(matrices, mesh.triangles, mesh.interior_nodes, dtype=dtype)
