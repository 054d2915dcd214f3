"""A trained decoder stays under both certificates, on the operators that the encoder gives."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from .._train import descend
from .._types import Key
from ..certificates import contraction_certificate, energy_certificate, energy_norm
from ..evidence import AbstractTheory, BoundRule, Curve, Kind
from ..pde import (
    ParametricDiffusion,
    cosine_modes,
    ellipticity_certificate,
    interval_grid,
    quadrant_modes,
    square_grid,
)
from ..solver import WeakFormEncoder, draw_prompts, population_gradient, project_to_box, trajectory

INSTANCE_SEED = 65


class ParametricCertificate(AbstractTheory):
    """`‖e_l‖₂ ≤ ‖I − P Â‖₂^l ‖e_0‖₂`, and `‖e_l‖_Â ≤ ‖I − Â^{1/2} P Â^{1/2}‖₂^l ‖e_0‖_Â`, at every depth `l ≥ 1`.

    `Â = A(ẑ)` is assembled from the four parameters that the weak-form encoder reads off a prompt with noisy loads,
    and `e_l` is the distance from the solution of the estimated system: what the decoder is answerable for. Three
    families: cosines of amplitude 0.2 on the interval, quadrants of amplitude 0.5 on the square, and the exponential of
    cosines of amplitude 0.3 on the square.

    Building a configuration trains a free matrix `P` for each family, from `P = τ A_0^{-1}` with the step of
    [`jaxsolve.pde.ellipticity_certificate`][], by Adam on the population loss at depth `L` for `x* ~ N(0, I)`, and
    freezes it. First errors lean towards the direction that the first step reduces least; with white ones the
    counterfeit would pass by luck.

    The counterfeit puts the spectral radius in place of both norms.

    Attributes
    ----------
    preconditioners, operators, solutions
        The frozen `P`, the estimated operators and the solutions of their systems, family by family.
    radius
        Whether the spectral radius is taken for the norms.
    """

    preconditioners: tuple[Float[Array, "_ _"], ...]
    operators: tuple[Float[Array, "tasks _ _"], ...]
    solutions: tuple[Float[Array, "tasks _"], ...]
    depth: int = eqx.field(static=True)
    radius: bool = eqx.field(static=True, default=False)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.BOUND
    rule: ClassVar[BoundRule] = BoundRule(relative=1e-6, absolute=1e-6)
    source: ClassVar[str] = """@book{saad2003iterative,
  author = {Saad, Yousef},
  title = {Iterative Methods for Sparse Linear Systems},
  edition = {2},
  publisher = {SIAM},
  year = {2003},
}"""
    statement: ClassVar[str] = (
        "With the operator that the encoder gives, the error of a trained and frozen decoder after l steps lies under "
        "the l-th power of its contraction factor, in the Euclidean and in the energy norm, for every task of the "
        "parametric equation in one and two dimensions, with affine and log-affine coefficients."
    )
    observables: ClassVar[tuple[str, ...]] = (
        "interval_spectral",
        "interval_energy",
        "square_spectral",
        "square_energy",
        "log_affine_spectral",
        "log_affine_energy",
    )
    assumptions: ClassVar[tuple[str, ...]] = (
        "the preconditioner does not change from step to step",
        "errors are counted from the solution of the estimated system",
    )
    breaks_when: ClassVar[str] = "Errors are counted from the true solution: the encoder's part obeys no such bound."
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        interval: int = 31,
        square: int = 7,
        tasks: int = 32,
        held_out: int = 32,
        depth: int = 6,
        steps: int = 20,
        learning_rate: float = 1e-4,
        load_noise: float = 6.2e-4,
        pairs: int = 8,
        instance_seed: int = INSTANCE_SEED,
    ) -> "ParametricCertificate":
        """32 tasks to train on for 20 steps, 32 held-out tasks, for each family."""
        random = np.random.default_rng(instance_seed)
        line, plane = interval_grid(interval, dtype=dtype), square_grid(square, dtype=dtype)
        families = (
            ParametricDiffusion(line, cosine_modes(line)),
            ParametricDiffusion(plane, quadrant_modes(plane)),
            ParametricDiffusion(plane, cosine_modes(plane, amplitude=0.3), link="log-affine"),
        )
        matrices, operators, solutions = [], [], []
        for number, family in enumerate(families):
            parameters = jnp.asarray(random.uniform(-1, 1, (tasks + held_out, 4)), dtype)
            true = family.operators(parameters)
            start = ellipticity_certificate(family).step * jnp.linalg.inv(family.mean_operator)
            matrix = _trained(start, true[:tasks], depth, steps, learning_rate)
            key = jax.random.fold_in(jax.random.key(instance_seed), number)
            prompts = draw_prompts(true[tasks:], pairs=pairs, load_noise=load_noise, key=key)
            estimate, _ = project_to_box(WeakFormEncoder.from_family(family).estimate(*prompts).coefficients)
            found = family.operators(estimate)
            slow = np.linalg.svd(np.eye(found.shape[1]) - np.asarray(matrix) @ np.asarray(found))[2][:, 0]
            leaning = slow * found.shape[1] ** 0.5 + 0.3 * random.standard_normal(slow.shape)
            matrices.append(matrix)
            operators.append(found)
            solutions.append(jnp.asarray(leaning, dtype))
        return cls(preconditioners=tuple(matrices), operators=tuple(operators), solutions=tuple(solutions), depth=depth)

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 128,
        held_out: int = 256,
        steps: int = 400,
        **options,
    ) -> "ParametricCertificate":
        """128 tasks, 400 steps, 256 held-out tasks; else as ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, held_out=held_out, steps=steps, **options)

    def grid(self) -> Float[Array, " points"]:
        """Depths 1 to ``depth``."""
        return jnp.arange(1, self.depth + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Powers of the contraction factors."""
        bounds = []
        for matrix, operators, solutions in zip(self.preconditioners, self.operators, self.solutions, strict=True):
            spectral = contraction_certificate(matrix, operators, -solutions, depth=1)
            energy = energy_certificate(matrix, operators, -solutions, depth=1)
            rates = (spectral.spectral_norm, energy.energy_contraction)
            for rate, first in zip(rates, (spectral.norm_bounds[0], energy.bounds[0]), strict=True):
                used = spectral.spectral_radius if self.radius else rate
                bounds.append(Curve(grid, used[None] ** grid[:, None] * first[None]))
        return dict(zip(self.observables, bounds, strict=True))

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Norms of the iterates minus the solution of the estimated system."""
        del key
        curves = []
        for matrix, operators, solutions in zip(self.preconditioners, self.operators, self.solutions, strict=True):
            sides = jnp.einsum("tij,tj->ti", operators, solutions, precision="highest")
            iterates = trajectory(matrix, operators, sides, jnp.zeros_like(solutions), depth=self.depth)
            errors = iterates - solutions[None]
            for norms in (jnp.linalg.norm(errors, axis=2), energy_norm(operators, errors)):
                curves.append(Curve(grid, norms.at[grid.astype(int)].get(mode="fill", fill_value=jnp.nan)))
        return dict(zip(self.observables, curves, strict=True))

    def counterfeit(self) -> "ParametricCertificate":
        """The spectral radius of `I − P Â` in place of both norms."""
        return dataclasses.replace(self, radius=True)


def _trained(start, operators, depth, steps, learning_rate):
    loss = eqx.Partial(
        population_gradient, operators=operators, second_moment=jnp.eye(len(start), dtype=start.dtype), depth=depth
    )
    optimizer = optax.adam(optax.cosine_decay_schedule(learning_rate, max(steps, 1)), eps=1e-20)
    return descend(loss, start, optimizer, steps=steps).parameters
