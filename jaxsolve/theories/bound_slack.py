"""Bounds that always hold say little about the size of what they bound."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from .._types import Key
from ..certificates import depth_risk, empirical_bernstein
from ..evidence import AbstractTheory, Curve, Kind, NullModelRule
from ..preconditioners import FreeLinear
from ..solver import apply_operators, pretrain, trajectory, wishart_operators

INSTANCE_SEED = 55
FIRST = 6
"""The smallest depth that is compared."""

CLIP = 10.0
CONFIDENCE_DELTA = 0.05


class BoundSlack(AbstractTheory):
    """Read as predictions, the spectral-norm certificate and the empirical Bernstein bound are far too high.

    For a trained free matrix and `z* ~ N(0, I)` the risk after `L` steps, a mean square over unknowns and held-out
    tasks without the factor 1/2, is compared with

        spectral norm    mean over tasks of ‖I − P H‖₂^{2L},
        Bernstein        the upper bound at 95 % on the mean of losses clipped at 10, from one loss of each task.

    Both hold, and both exceed the risk at every depth from 6 on by a factor of three or more. The certificate takes the
    worst direction of each task at every step, although errors turn away from it; the statistical bound has a part that
    depends on the clip and the number of tasks alone.

    Operators are `S^{1/2} W S^{1/2}`, `W` a Wishart matrix over its `8 K` degrees of freedom, `S` from 0.1 to 1,
    equally spaced in the logarithm. The counterfeit replaces both bounds by estimates: `‖(I − P H)^L‖_F² / K` and the
    mean of the losses.

    Attributes
    ----------
    preconditioner
        The frozen `P`.
    operators
        `H` of the held-out tasks.
    held_out_solutions
        `z*` of the losses that the Bernstein bound sees.
    estimates
        Whether the bounds are replaced by estimates.
    """

    preconditioner: Float[Array, "size size"]
    operators: Float[Array, "tasks size size"]
    held_out_solutions: Float[Array, "tasks size"]
    depth: int = eqx.field(static=True)
    estimates: bool = eqx.field(static=True, default=False)
    replicates: int = eqx.field(static=True, default=64)

    kind: ClassVar[Kind] = Kind.NULL_MODEL
    rule: ClassVar[NullModelRule] = NullModelRule(factor=3.0, direction="over")
    source: ClassVar[str] = """@inproceedings{maurer2009empirical,
  author = {Maurer, Andreas and Pontil, Massimiliano},
  title = {Empirical Bernstein Bounds and Sample Variance Penalization},
  booktitle = {Conference on Learning Theory},
  year = {2009},
}"""
    statement: ClassVar[str] = (
        "For a trained free preconditioner the mean square of the spectral-norm certificate, and the empirical "
        "Bernstein bound from 512 losses clipped at 10, exceed the risk (mean square over unknowns, no factor 1/2) by "
        "a factor of three or more at depths of six and more."
    )
    observables: ClassVar[tuple[str, ...]] = ("spectral_norm", "bernstein")
    assumptions: ClassVar[tuple[str, ...]] = (
        "a trained free preconditioner, for which I - PH is not normal",
        "a clip far above the typical loss",
    )
    breaks_when: ClassVar[str] = "I - PH is a multiple of the identity, and the clip is near the mean of the losses."
    effect: ClassVar[float] = 0.5

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 16,
        tasks: int = 128,
        held_out: int = 512,
        depth: int = 8,
        steps: int = 100,
        learning_rate: float = 1e-2,
        instance_seed: int = INSTANCE_SEED,
    ) -> "BoundSlack":
        """128 tasks to train on for 100 steps, 512 held out, eight layers."""
        random = np.random.default_rng(instance_seed)
        factors = random.standard_normal((tasks + held_out, size, 8 * size))
        operators = jnp.asarray(wishart_operators(factors, np.logspace(-1, 0, size)), dtype)
        solutions = jnp.asarray(random.standard_normal((tasks + held_out, size)), dtype)
        training = solutions[:tasks]
        run = pretrain(
            FreeLinear(jnp.eye(size, dtype=dtype)),
            operators[:tasks],
            apply_operators(operators[:tasks], training),
            jnp.zeros_like(training),
            training,
            depth=depth,
            optimizer=optax.adam(optax.cosine_decay_schedule(learning_rate, steps)),
            steps=steps,
        )
        return cls(
            preconditioner=run.parameters.entries,
            operators=operators[tasks:],
            held_out_solutions=solutions[tasks:],
            depth=depth,
        )

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, tasks: int = 256, steps: int = 1500, **options
    ) -> "BoundSlack":
        """256 tasks, 1500 steps; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, steps=steps, **options)

    def grid(self) -> Float[Array, " points"]:
        """Depths from six on."""
        return jnp.arange(FIRST, self.depth + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Both bounds, or both estimates, at each depth."""
        size = self.operators.shape[1]
        products = jnp.einsum("ij,tjk->tik", self.preconditioner, self.operators, precision="highest")
        iteration = jnp.eye(size, dtype=self.dtype)[None] - products
        norms = jnp.linalg.norm(iteration, 2, axis=(1, 2))
        losses = self._losses(self.held_out_solutions)
        certified, statistical = [], []
        for depth in range(FIRST, self.depth + 1):
            if self.estimates:
                power = jnp.linalg.matrix_power(iteration, depth)
                certified.append(jnp.mean(jnp.sum(power**2, axis=(1, 2))) / size)
                statistical.append(jnp.mean(losses[depth]))
            else:
                certified.append(jnp.mean(norms ** (2 * depth)))
                bound = empirical_bernstein(losses[depth], clip=CLIP, confidence_delta=CONFIDENCE_DELTA, throw=False)
                statistical.append(bound.bound)
        at = grid.astype(int) - FIRST
        return {
            "spectral_norm": Curve(grid, jnp.stack(certified)[at]),
            "bernstein": Curve(grid, jnp.stack(statistical)[at]),
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """The risk of the iterates, for new solutions."""
        tasks, size = self.held_out_solutions.shape
        solutions = jax.random.normal(key, (tasks * size,), self.dtype).reshape(tasks, size)
        right_hand_sides = apply_operators(self.operators, solutions)
        initial = jnp.zeros_like(solutions)
        iterates = trajectory(self.preconditioner, self.operators, right_hand_sides, initial, depth=self.depth)
        risk = depth_risk(iterates, solutions).at[grid.astype(int)].get(mode="fill", fill_value=jnp.nan)
        return {name: Curve(grid, risk) for name in self.observables}

    def counterfeit(self) -> "BoundSlack":
        """Estimates in place of bounds."""
        return dataclasses.replace(self, estimates=True)

    def _losses(self, solutions: Float[Array, "tasks size"]) -> Float[Array, "iterates tasks"]:
        right_hand_sides = apply_operators(self.operators, solutions)
        initial = jnp.zeros_like(solutions)
        iterates = trajectory(self.preconditioner, self.operators, right_hand_sides, initial, depth=self.depth)
        return jnp.mean((iterates - solutions[None]) ** 2, axis=2)
