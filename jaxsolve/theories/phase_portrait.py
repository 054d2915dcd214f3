"""The path of the error in two unknowns: a zigzag without preconditioner, nearly straight with one."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, BoundRule, Curve, Kind
from ..preconditioners import FreeLinear
from ..solver import apply_operators, pretrain, trajectory, wishart_operators

INSTANCE_SEED = 52
EIGENVALUES = (1.0, 0.08)
"""Of the stiff and of the soft axis."""


def _spectral_norm(matrices: Float[Array, "tasks 2 2"]) -> Float[Array, " tasks"]:
    return jnp.linalg.norm(matrices, 2, axis=(1, 2))


def _nothing(matrices: Float[Array, "tasks 2 2"]) -> Float[Array, " tasks"]:
    return jnp.zeros(len(matrices), matrices.dtype)


class PhasePortrait(AbstractTheory):
    """The path of the error is at most `(g + ε) / (g − ε)` times as long as the distance between its ends.

    `g = tr(P H) / K ≤ 1` and `ε = ‖P H − g I‖₂ < g`. Every step has length at most `(g + ε) ‖e_l‖` and shortens the
    error by at least `(g − ε) ‖e_l‖`; the distance is at least what the error has lost. The bound is checked for `P`
    near a multiple of the inverse and for a trained free matrix on held-out tasks, from starts in all directions.

    Without preconditioner, `P = p I` with `1 < p λ_1 < 2`, the component of the error along the stiff axis changes its
    sign at every step: the product of successive components is negative. Products are divided by the square of the
    earlier one.

    The matrix is trained through one layer. Trained through two or more it need not come near the inverse, because
    several steps reduce the error with rotations as well: its paths bend, `ε > g`, and the bound says nothing.

    Operators have eigenvalues near 1 and 0.08. Those of the trained decoder are `S^{1/2} W S^{1/2}`, `W` a Wishart
    matrix over its 2048 degrees of freedom.

    The counterfeit says that paths are straight, `ε = 0`.

    Attributes
    ----------
    operators
        `H`, one per start.
    initial
        `e_0`, one per operator, on the unit circle.
    near_inverse
        `P` near 0.6 times the inverse of the mean operator.
    learned
        `P` as trained.
    step
        `p`.
    deviation
        `ε` from `P H − g I`.
    """

    operators: Float[Array, "tasks 2 2"]
    initial: Float[Array, "tasks 2"]
    near_inverse: Float[Array, "2 2"]
    learned: Float[Array, "2 2"]
    step: Float[Array, ""]
    depth: int = eqx.field(static=True)
    deviation: Callable = eqx.field(static=True, default=_spectral_norm)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.BOUND
    rule: ClassVar[BoundRule] = BoundRule()
    source: ClassVar[str] = """@misc{solver-training,
  title = {Training dynamics of a transformer that learns a preconditioner},
  note = {source document 000, on its plots; the bound is elementary}
}"""
    statement: ClassVar[str] = (
        "The path of a preconditioned error, over the distance between its ends, is at most (g + eps)/(g - eps) with "
        "g = tr(PH)/K at most 1 and eps = ||PH - gI|| < g; a plain step beyond 1/lambda_max changes the sign of the "
        "error along the stiff axis at every step."
    )
    observables: ClassVar[tuple[str, ...]] = ("near_inverse", "learned", "sign_of_plain_steps")
    assumptions: ClassVar[tuple[str, ...]] = ("the preconditioner is frozen", "eps < g <= 1 for every task")
    breaks_when: ClassVar[str] = "PH is far from a multiple of the identity: eps exceeds g and the bound says nothing."
    effect: ClassVar[float] = 0.1

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 48,
        starts: int = 24,
        depth: int = 8,
        trained_depth: int = 1,
        steps: int = 300,
        learning_rate: float = 0.1,
        step: float = 1.85,
        instance_seed: int = INSTANCE_SEED,
    ) -> "PhasePortrait":
        """A free matrix trained on 48 tasks for 300 steps; 24 held-out tasks, each with a start of its own."""
        random = np.random.default_rng(instance_seed)
        factors = random.standard_normal((tasks + starts, 2, 2048))
        operators = jnp.asarray(wishart_operators(factors, np.asarray(EIGENVALUES)), dtype)
        solutions = jnp.asarray(random.standard_normal((tasks, 2)), dtype)
        run = pretrain(
            FreeLinear(jnp.eye(2, dtype=dtype)),
            operators[:tasks],
            apply_operators(operators[:tasks], solutions),
            jnp.zeros_like(solutions),
            solutions,
            depth=trained_depth,
            optimizer=optax.adam(optax.cosine_decay_schedule(learning_rate, steps)),
            steps=steps,
        )
        angles = 2 * np.pi * (np.arange(starts) + 0.5) / starts
        inverse = 0.6 * np.diag(1 / np.asarray(EIGENVALUES)) @ (np.eye(2) + 0.05 * random.standard_normal((2, 2)))
        return cls(
            operators=operators[tasks:],
            initial=jnp.asarray(np.stack([np.cos(angles), np.sin(angles)], axis=1), dtype),
            near_inverse=jnp.asarray(inverse, dtype),
            learned=run.parameters.entries,
            step=jnp.asarray(step, dtype),
            depth=depth,
        )

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, tasks: int = 256, starts: int = 512, **options
    ) -> "PhasePortrait":
        """256 tasks to train on, 512 held out; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, starts=starts, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of the held-out tasks."""
        return jnp.arange(1, len(self.operators) + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The bounds on the detour, infinite where they do not apply, and zero for the signs."""
        plain = jnp.zeros((len(self.operators), self.depth), self.dtype)
        return {
            "near_inverse": Curve(grid, self._bound(self.near_inverse)),
            "learned": Curve(grid, self._bound(self.learned)),
            "sign_of_plain_steps": Curve(grid, plain),
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Lengths of paths over distances, and products of successive components along the stiff axis."""
        del key

        def errors(preconditioner, operators):
            return trajectory(preconditioner, operators, jnp.zeros_like(self.initial), self.initial, depth=self.depth)

        def detour(preconditioner):
            path = errors(preconditioner, self.operators)
            lengths = jnp.linalg.norm(jnp.diff(path, axis=0), axis=2)
            return jnp.sum(lengths, axis=0) / jnp.linalg.norm(path[-1] - path[0], axis=1)

        aligned = jnp.broadcast_to(jnp.diag(jnp.asarray(EIGENVALUES, self.dtype)), self.operators.shape)
        stiff = errors(self.step * jnp.eye(2, dtype=self.dtype), aligned)[:, :, 0]
        return {
            "near_inverse": Curve(grid, detour(self.near_inverse)),
            "learned": Curve(grid, detour(self.learned)),
            "sign_of_plain_steps": Curve(grid, (stiff[1:] / stiff[:-1]).T),
        }

    def counterfeit(self) -> "PhasePortrait":
        """Straight paths."""
        return dataclasses.replace(self, deviation=_nothing)

    def _bound(self, preconditioner: Float[Array, "2 2"]) -> Float[Array, " tasks"]:
        products = jnp.einsum("ij,tjk->tik", preconditioner, self.operators, precision="highest")
        gains = jnp.trace(products, axis1=1, axis2=2) / 2
        deviations = self.deviation(products - gains[:, None, None] * jnp.eye(2, dtype=self.dtype)[None])
        applies = (deviations < gains) & (gains <= 1)
        safe = jnp.where(applies, gains - deviations, 1)
        return jnp.where(applies, (gains + deviations) / safe, jnp.inf)
