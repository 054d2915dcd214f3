"""Solutions on linear, bilinear and triangular elements are of second order in the mesh width."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, LimitRule
from ..pde import ParametricDiffusion, TriangleMesh, cosine_modes, interval_grid, square_grid, triangle_grid

PROBES = 7


class GalerkinOrder(AbstractTheory):
    """`‖u_h − u‖ = O(h²)` at fixed nodes, for manufactured solutions of `−div(a grad u) = f`.

    The solution is `u = Π_i sin(π x_i)` on the unit interval or square, the coefficient `a = 1 + 0.3 Π_i cos(π x_i)`,
    or `exp(0.3 cos(π x))`, and the force follows from both by automatic differentiation. The coefficient is assembled
    through a parametric family with one mode. The nodes of the coarsest grid are nodes of all others, and the errors
    are taken there. Triangles come from the squares of a grid, each cut along a diagonal.

    The counterfeit has a solution that is 1 % too large.
    """

    families: tuple[tuple[ParametricDiffusion, ...], ...]
    scale: Float[Array, ""]
    sizes: tuple[int, ...] = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=2.0, band=0.05)
    source: ClassVar[str] = """@book{brenner2008mathematical,
  author = {Brenner, Susanne C. and Scott, L. Ridgway},
  title = {The Mathematical Theory of Finite Element Methods},
  edition = {3},
  publisher = {Springer},
  year = {2008},
}"""
    statement: ClassVar[str] = (
        "The error of the Galerkin solution at given nodes falls with the square of the mesh width, for a smooth "
        "coefficient taken at the quadrature points and a smooth solution."
    )
    observables: ClassVar[tuple[str, ...]] = ("interval", "log_affine", "square", "triangles")
    assumptions: ClassVar[tuple[str, ...]] = ("smooth coefficient, force and solution", "a sequence of uniform grids")
    breaks_when: ClassVar[str] = "The coefficient jumps inside elements, or the domain has corners that point inwards."
    effect: ClassVar[float] = 0.05

    @classmethod
    def quick(cls, *, dtype: jax.typing.DTypeLike = float, sizes: tuple[int, ...] = (7, 15, 23)) -> "GalerkinOrder":
        """7, 15 and 23 unknowns in each direction.

        Raises
        ------
        ValueError
            For sizes of which one more is no multiple of 8.
        """
        if any((size + 1) % (PROBES + 1) for size in sizes):
            raise ValueError(f"Sizes are of the form 8 k − 1, so that all grids share nodes; got {sizes}.")
        lines = tuple(interval_grid(size, dtype=dtype) for size in sizes)
        squares = tuple(square_grid(size, dtype=dtype) for size in sizes)
        triangles = tuple(triangle_grid(_cut_squares(size), dtype=dtype) for size in sizes)
        families = tuple(
            tuple(_family(found, "log-affine" if name == "log_affine" else "affine") for found in discretisations)
            for name, discretisations in zip(cls.observables, (lines, lines, squares, triangles), strict=True)
        )
        return cls(families=families, scale=jnp.ones((), dtype), sizes=sizes)

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, sizes: tuple[int, ...] = (7, 15, 23, 31, 39)
    ) -> "GalerkinOrder":
        """Up to 39 unknowns in each direction."""
        return cls.quick(dtype=dtype, sizes=sizes)

    def grid(self) -> Float[Array, " points"]:
        """The mesh widths."""
        return 1 / (jnp.asarray(self.sizes, self.dtype) + 1)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The exact solution at the common nodes."""
        curves = {}
        for name, (coarsest, *_) in zip(self.observables, self.families, strict=True):
            exact = self.scale * jax.vmap(_solution)(coarsest.discretisation.nodes)
            curves[name] = Curve(grid, jnp.broadcast_to(exact[None], (len(grid), len(exact))))
        return curves

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Assembly and a direct solve on each grid."""
        del key
        curves = {}
        for name, families in zip(self.observables, self.families, strict=True):
            values = [self._probed(family, size) for family, size in zip(families, self.sizes, strict=True)]
            curves[name] = Curve(grid, jnp.stack(values))
        return curves

    def _probed(self, family, size):
        """The solution at the nodes that all grids share."""
        grid = family.discretisation
        force = jax.vmap(lambda point: _force(point, family.link))(grid.points)
        solution = jnp.linalg.solve(family.operator(jnp.ones(1, self.dtype)), grid.load(force))
        shape = (size,) * grid.nodes.shape[1]
        stride = (size + 1) // (PROBES + 1)
        return solution.reshape(shape)[(slice(stride - 1, None, stride),) * len(shape)].ravel()

    def counterfeit(self) -> "GalerkinOrder":
        """The exact solution is 1 % too large."""
        return dataclasses.replace(self, scale=1.01 * self.scale)


def _family(discretisation, link):
    waves = [(1,) * discretisation.points.shape[1]]
    return ParametricDiffusion(discretisation, cosine_modes(discretisation, waves, amplitude=0.3), link=link)


def _solution(point):
    return jnp.sin(jnp.pi * point).prod()


def _mode(point):
    return 0.3 * jnp.cos(jnp.pi * point).prod()


def _force(point, link):
    """`−div(a grad u)` at a point."""

    def flux(point):
        coefficient = 1 + _mode(point) if link == "affine" else jnp.exp(_mode(point))
        return coefficient * jax.grad(_solution)(point)

    return -jnp.trace(jax.jacfwd(flux)(point))


def _cut_squares(size: int) -> TriangleMesh:
    """The squares of a grid with ``size`` nodes inside in each direction, cut along a diagonal."""
    side = size + 2
    axis = np.linspace(0, 1, side)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    corner = (np.arange(size + 1)[:, None] * side + np.arange(size + 1)[None, :]).ravel()
    lower = np.stack([corner, corner + side, corner + side + 1], axis=1)
    upper = np.stack([corner, corner + side + 1, corner + 1], axis=1)
    return TriangleMesh(points, np.concatenate([lower, upper]))
