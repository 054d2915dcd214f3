"""How far a coefficient may leave its mean bounds the contraction of the mean operator's inverse, on any mesh."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..certificates import energy_norm
from ..datasets import airfoil_mesh
from ..evidence import AbstractTheory, BoundRule, Curve, Kind
from ..pde import (
    EllipticityCertificate,
    ParametricDiffusion,
    TriangleMesh,
    cosine_modes,
    ellipticity_certificate,
    interval_grid,
    quadrant_modes,
    square_grid,
    triangle_grid,
)
from ..solver import trajectory

INSTANCE_SEED = 61


def _of_largest_mode(family: ParametricDiffusion) -> EllipticityCertificate:
    largest = jnp.abs(family.modes).max(axis=0, keepdims=True)
    return ellipticity_certificate(eqx.tree_at(lambda family: family.modes, family, largest))


class EllipticityContraction(AbstractTheory):
    """`‖e_l‖_{A(z)} ≤ ρ^l ‖e_0‖_{A(z)}` with `ρ` from the coefficient alone, for every `z` of the box.

    The iteration has the preconditioner `P = τ A_0^{-1}`. With `a(x, z)/a_0(x)` between `l` and `u`, the step is
    `τ = 2/(l + u)` and `ρ = (u − l)/(u + l)`: no matrix is formed, no eigenvalue computed and nothing trained.

    Four families with four parameters: cosines on the interval (`ρ` just below 0.8), quadrants of the square
    (`ρ = 0.5`), the exponential of cosines on the square (`ρ` just below `tanh 1.2`), and cosines on the triangles
    around an airfoil. Half of the tasks lie at corners of the box, the other half anywhere in it. First errors are
    standard normal.

    The counterfeit takes the largest mode at each point in place of the sum of all.

    Attributes
    ----------
    families
        In the order of ``observables``.
    parameters
        `z` of the tasks of each family.
    bound
        What gives a certificate for a family.
    """

    families: tuple[ParametricDiffusion, ...]
    parameters: tuple[Float[Array, "_ _"], ...]
    depth: int = eqx.field(static=True)
    bound: Callable = eqx.field(static=True, default=ellipticity_certificate)
    replicates: int = eqx.field(static=True, default=2)

    kind: ClassVar[Kind] = Kind.BOUND
    rule: ClassVar[BoundRule] = BoundRule(relative=1e-4, absolute=1e-6)
    source: ClassVar[str] = """@article{cohen2015approximation,
  author = {Cohen, Albert and DeVore, Ronald},
  title = {Approximation of High-Dimensional Parametric {PDEs}},
  journal = {Acta Numerica},
  volume = {24},
  pages = {1--159},
  year = {2015},
}"""
    statement: ClassVar[str] = (
        "With the inverse of the mean operator as preconditioner, the energy norm of the error falls per step at least "
        "by a factor that follows from the extremes of the coefficient over its mean, on every mesh and for every "
        "task of the box."
    )
    observables: ClassVar[tuple[str, ...]] = ("interval", "quadrants", "log_affine", "airfoil")
    assumptions: ClassVar[tuple[str, ...]] = (
        "the coefficient is positive over the whole box",
        "matrix and certificate take the coefficient at the same quadrature points",
    )
    breaks_when: ClassVar[str] = "A task lies outside the box, or the operator has terms besides diffusion."
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        interval: int = 31,
        square: int = 7,
        tasks: int = 32,
        depth: int = 8,
        instance_seed: int = INSTANCE_SEED,
    ) -> "EllipticityContraction":
        """31 unknowns on the interval, 49 on the square, 260 around the airfoil, 32 tasks (8 on the airfoil)."""
        random = np.random.default_rng(instance_seed)
        line, plane = interval_grid(interval, dtype=dtype), square_grid(square, dtype=dtype)
        airfoil = triangle_grid(TriangleMesh(*airfoil_mesh()), dtype=dtype)
        families = (
            ParametricDiffusion(line, cosine_modes(line)),
            ParametricDiffusion(plane, quadrant_modes(plane)),
            ParametricDiffusion(plane, cosine_modes(plane, amplitude=0.3), link="log-affine"),
            ParametricDiffusion(airfoil, cosine_modes(airfoil)),
        )
        parameters = []
        for count in (tasks, tasks, tasks, max(tasks // 4, 2)):
            drawn = random.uniform(-1, 1, (count, 4))
            drawn[: count // 2] = np.sign(drawn[: count // 2])
            drawn[0] = 1.0
            parameters.append(jnp.asarray(drawn, dtype))
        return cls(families=families, parameters=tuple(parameters), depth=depth)

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, interval: int = 127, square: int = 15, tasks: int = 64, **options
    ) -> "EllipticityContraction":
        """127 unknowns on the interval, 225 on the square, 64 tasks (16 on the airfoil); else as ``quick``."""
        return cls.quick(dtype=dtype, interval=interval, square=square, tasks=tasks, **options)

    def grid(self) -> Float[Array, " points"]:
        """Depths 1 to ``depth``."""
        return jnp.arange(1, self.depth + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """`ρ^l`, the bound on the energy norm relative to that of the first error."""
        bounds = {}
        for name, family, parameters in zip(self.observables, self.families, self.parameters, strict=True):
            contraction = self.bound(family).contraction
            bounds[name] = Curve(grid, jnp.broadcast_to((contraction**grid)[:, None], (len(grid), len(parameters))))
        return bounds

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """The iteration from a random start to the solution 0."""
        curves = {}
        for number, name in enumerate(self.observables):
            family, parameters = self.families[number], self.parameters[number]
            operators = family.operators(parameters, throw=False)
            step = ellipticity_certificate(family, throw=False).step
            preconditioner = step * jnp.linalg.inv(family.mean_operator)
            start = jax.random.normal(jax.random.fold_in(key, number), operators.shape[:2], self.dtype)
            errors = trajectory(preconditioner, operators, jnp.zeros_like(start), start, depth=self.depth)
            norms = energy_norm(operators, errors)
            curves[name] = Curve(grid, (norms / norms[:1]).at[grid.astype(int)].get(mode="fill", fill_value=jnp.nan))
        return curves

    def counterfeit(self) -> "EllipticityContraction":
        """The largest mode at each point in place of the sum of all modes."""
        return dataclasses.replace(self, bound=_of_largest_mode)
