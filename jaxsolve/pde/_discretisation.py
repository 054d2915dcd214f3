"""Piecewise linear and bilinear elements: an assembler, where its coefficient is taken, and load vectors."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._types import ArrayLike
from ._assembly import GalerkinAssembler, numbered, stiffness_assembler
from ._mesh import TriangleMesh

_GAUSS = (np.array([-1.0, 1.0]) / 3**0.5 + 1) / 2


class Discretisation(eqx.Module):
    """The operator `−div(a grad u)`, zero on the boundary, with its coefficient taken at quadrature points `x_c`.

    The matrix is `A(a) = Σ_c a(x_c) R_cᵀ K_c R_c`, where `K_c` holds the weight `w_c` of the point and the gradients
    of the local functions there, and `R_c` picks the local unknowns. The load vector of a force `f` takes the same
    points, `b_i = Σ_c w_c f(x_c) φ_i(x_c)`. Both are linear in the values at the points, and differentiable.

    Attributes
    ----------
    assembler
        Of the matrix: its cells are the quadrature points.
    points
        `x_c`.
    nodes
        Where the unknowns are, in the order of the rows.
    """

    assembler: GalerkinAssembler
    points: Float[Array, "cells dimension"]
    nodes: Float[Array, "size dimension"]
    _load_values: Float[Array, "cells local"]
    _unknowns: Int[Array, "cells local"]

    def load(self, force: Float[Array, " cells"]) -> Float[Array, " size"]:
        """The load vector of a force, from its values at ``points``.

        Raises
        ------
        ValueError
            Where the force does not have one value per point.
        """
        if force.shape != self.points.shape[:1]:
            raise ValueError(
                f"A force has one value for each of the {self.points.shape[0]} points; got shape {force.shape}. Use "
                "jax.vmap over several forces."
            )
        size = self.assembler.size
        contributions = (force[:, None] * self._load_values).ravel()
        return jax.ops.segment_sum(contributions, self._unknowns.ravel(), num_segments=size + 1)[:size]


def interval_grid(unknowns: int, *, dtype: jax.typing.DTypeLike = float) -> Discretisation:
    """Piecewise linear elements on the unit interval, the coefficient taken at the midpoint of each element.

    The nodes are `x_i = i h` with `h = 1/(n + 1)`, of which the `n` inner ones carry unknowns; errors of solutions are
    of order `h²`.

    Raises
    ------
    ValueError
        For fewer than one unknown.

    >>> grid = interval_grid(3)
    >>> grid.assembler.assemble(jnp.ones(4)).tolist()
    [[8.0, -4.0, 0.0], [-4.0, 8.0, -4.0], [0.0, -4.0, 8.0]]
    >>> grid.load(jnp.ones(4)).tolist()
    [0.25, 0.25, 0.25]
    """
    _check_unknowns(unknowns)
    nodes = np.linspace(0, 1, unknowns + 2)
    width = 1 / (unknowns + 1)
    cells = np.arange(unknowns + 1)[:, None] + np.arange(2)[None, :]
    matrices = np.broadcast_to(np.array([[1.0, -1.0], [-1.0, 1.0]]) / width, (unknowns + 1, 2, 2))
    free = np.arange(1, unknowns + 1)
    return _discretisation(
        GalerkinAssembler(matrices, cells, free, dtype=dtype),
        points=(nodes[:-1, None] + nodes[1:, None]) / 2,
        nodes=nodes[free, None],
        load_values=np.full(cells.shape, width / 2),
        cells=cells,
        free=free,
        dtype=dtype,
    )


def square_grid(unknowns: int, *, dtype: jax.typing.DTypeLike = float) -> Discretisation:
    """Bilinear elements on a uniform grid of the unit square, with four Gauss points in each element.

    There are ``unknowns`` nodes inside in either direction, with `h = 1/(unknowns + 1)` between them; the first
    coordinate of the nodes varies slowest. Errors of solutions are of order `h²`.

    Raises
    ------
    ValueError
        For fewer than one unknown in a direction.

    >>> grid = square_grid(1)
    >>> grid.points.shape, grid.assembler.assemble(jnp.ones(16)).round(12).tolist()
    ((16, 2), [[2.666666666667]])
    """
    _check_unknowns(unknowns)
    width, side = 1 / (unknowns + 1), unknowns + 2
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    elements = np.stack(np.meshgrid(*[np.arange(unknowns + 1)] * 2, indexing="ij"), axis=-1).reshape(-1, 1, 2)
    gauss = np.stack(np.meshgrid(_GAUSS, _GAUSS, indexing="ij"), axis=-1).reshape(-1, 2)
    factors = np.where(corners[None] == 1, gauss[:, None], 1 - gauss[:, None])
    gradients = (2 * corners[None] - 1) * factors[:, :, ::-1]
    matrices = np.einsum("gad,gbd->gab", gradients, gradients) / 4
    numbers = ((elements + corners[None]) * np.array([side, 1])).sum(axis=2)
    cells = np.repeat(numbers, len(gauss), axis=0)
    inside = np.arange(1, unknowns + 1)
    free = (inside[:, None] * side + inside[None, :]).ravel()
    return _discretisation(
        GalerkinAssembler(np.tile(matrices, (len(elements), 1, 1)), cells, free, dtype=dtype),
        points=(elements + gauss[None]).reshape(-1, 2) * width,
        nodes=np.stack(np.divmod(free, side), axis=1) * width,
        load_values=np.tile(width**2 / 4 * factors.prod(axis=2), (len(elements), 1)),
        cells=cells,
        free=free,
        dtype=dtype,
    )


def triangle_grid(mesh: TriangleMesh, *, dtype: jax.typing.DTypeLike = float) -> Discretisation:
    """Piecewise linear elements on a mesh of triangles, the coefficient taken at the centroids.

    The matrices are those of [`stiffness_assembler`][]; errors of solutions are of second order in the longest edge.

    Raises
    ------
    ValueError
        Where the mesh has no interior node.

    >>> from jaxsolve.datasets import airfoil_mesh
    >>> triangle_grid(TriangleMesh(*airfoil_mesh())).load(jnp.ones(582)).shape
    (260,)
    """
    return _discretisation(
        stiffness_assembler(mesh, dtype=dtype),
        points=mesh.centroids,
        nodes=mesh.points[mesh.interior_nodes],
        load_values=np.broadcast_to(mesh.areas[:, None] / 3, mesh.triangles.shape),
        cells=mesh.triangles,
        free=mesh.interior_nodes,
        dtype=dtype,
    )


def _check_unknowns(unknowns: int) -> None:
    if unknowns < 1:
        raise ValueError(f"A grid has at least one unknown inside in each direction; got {unknowns}.")


def _discretisation(
    assembler: GalerkinAssembler,
    *,
    points: Float[ArrayLike, "cells dimension"],
    nodes: Float[ArrayLike, "size dimension"],
    load_values: Float[ArrayLike, "cells local"],
    cells: Int[ArrayLike, "cells local"],
    free: Int[ArrayLike, " size"],
    dtype: jax.typing.DTypeLike,
) -> Discretisation:
    unknowns = numbered(np.asarray(cells), np.asarray(free))
    return Discretisation(
        assembler,
        jnp.asarray(points, dtype),
        jnp.asarray(nodes, dtype),
        jnp.asarray(load_values, dtype),
        jnp.asarray(np.where(unknowns < 0, assembler.size, unknowns)),
    )
