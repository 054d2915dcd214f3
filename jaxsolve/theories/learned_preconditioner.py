"""Training moves a preconditioner towards the inverse of the mean operator, and unseen tasks gain from it."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from .._types import Key
from ..certificates import depth_risk
from ..evidence import AbstractTheory, BoundRule, Curve, Kind
from ..preconditioners import FreeLinear
from ..solver import apply_operators, pretrain, trajectory, wishart_operators

INSTANCE_SEED = 51


def _untrained(eigenvalues: Float[Array, " size"]) -> Float[Array, " size"]:
    return jnp.ones_like(eigenvalues)


def _inverse(eigenvalues: Float[Array, " size"]) -> Float[Array, " size"]:
    return 1 / eigenvalues


class LearnedPreconditioner(AbstractTheory):
    """After training, a free matrix is nearer to `H̄^{−1}` than at its start `P = I`, and needs fewer steps.

    With the mean operator `H̄ = V Λ Vᵀ` of the training tasks and `g_k = (Vᵀ P V)_kk`, each of three quantities is at
    most what it was before training:

        gain error       (1/K) Σ_k |1 − λ_k g_k|,          at the start (1/K) Σ_k |1 − λ_k|,
        contraction      max |1 − eig(P H̄)|,               at the start max_k |1 − λ_k|,
        unseen risk      E‖e_{3L/4}‖² / K, trained,        at the start E‖e_L‖² / K:

    on tasks that were not trained on, the trained decoder has reached at three quarters of the depth what the untrained
    one reaches at full depth. Risks are means over unknowns and tasks without the factor 1/2, for solutions `N(0, I)`
    and starts at zero.

    Operators are `S^{1/2} W S^{1/2}` with `W` a Wishart matrix over its `8 K` degrees of freedom and `S` diagonal
    from 0.1 to 1, equally spaced in the logarithm. Building a configuration trains `P` by Adam on the loss at depth
    `L` and saves it along the way.

    The counterfeit says that the inverse is reached: it replaces the start by `H̄^{−1}`. The gain of the mode with the
    smallest eigenvalue stays far below `1/λ`.

    Attributes
    ----------
    preconditioners
        `P` after so many steps.
    recorded_steps
        These numbers of steps.
    mean
        `H̄`.
    unseen
        Operators of the held-out tasks.
    depth
        `L`, a multiple of four.
    reference
        Gains from eigenvalues: the matrix that training is held against.
    """

    preconditioners: Float[Array, "records size size"]
    recorded_steps: Float[Array, " records"]
    mean: Float[Array, "size size"]
    unseen: Float[Array, "tasks size size"]
    depth: int = eqx.field(static=True)
    reference: Callable = eqx.field(static=True, default=_untrained)
    replicates: int = eqx.field(static=True, default=16)

    kind: ClassVar[Kind] = Kind.BOUND
    rule: ClassVar[BoundRule] = BoundRule()
    source: ClassVar[str] = """@misc{solver-training,
  title = {Training dynamics of a transformer that learns a preconditioner},
  note = {source document 000, on its plots}
}"""
    statement: ClassVar[str] = (
        "Training a free preconditioner from the identity brings its gains in the modes of the mean operator nearer to "
        "1/lambda (mean absolute deviation over modes), lowers its largest contraction factor, and gives on unseen "
        "tasks at three quarters of the depth a risk (mean square, no factor 1/2) below that of the identity at full "
        "depth."
    )
    observables: ClassVar[tuple[str, ...]] = ("gain_error", "contraction", "unseen_risk")
    assumptions: ClassVar[tuple[str, ...]] = (
        "training and unseen tasks come from one ensemble",
        "many more equations, N K, than the free matrix has entries, K^2",
        "training has run long enough by the first record",
    )
    breaks_when: ClassVar[str] = "A few tasks are fitted by heart: the risk on unseen ones rises above its start."
    effect: ClassVar[float] = 0.05

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 16,
        tasks: int = 128,
        unseen: int = 64,
        depth: int = 8,
        steps: int = 400,
        records: int = 4,
        learning_rate: float = 1e-2,
        instance_seed: int = INSTANCE_SEED,
    ) -> "LearnedPreconditioner":
        """128 tasks of 16 unknowns, 400 steps, four records; 64 unseen tasks."""
        random = np.random.default_rng(instance_seed)
        factors = random.standard_normal((tasks + unseen, size, 8 * size))
        operators = jnp.asarray(wishart_operators(factors, np.logspace(-1, 0, size)), dtype)
        solutions = jnp.asarray(random.standard_normal((tasks, size)), dtype)
        run = pretrain(
            FreeLinear(jnp.eye(size, dtype=dtype)),
            operators[:tasks],
            apply_operators(operators[:tasks], solutions),
            jnp.zeros_like(solutions),
            solutions,
            depth=depth,
            optimizer=optax.adam(optax.cosine_decay_schedule(learning_rate, steps)),
            steps=steps,
            observe=lambda preconditioner: preconditioner.entries,
            record_every=steps // records,
        )
        return cls(
            preconditioners=run.records[1:],
            recorded_steps=run.recorded_steps[1:].astype(dtype),
            mean=jnp.mean(operators[:tasks], axis=0),
            unseen=operators[tasks:],
            depth=depth,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 256,
        unseen: int = 512,
        steps: int = 1500,
        records: int = 10,
        **options,
    ) -> "LearnedPreconditioner":
        """256 tasks, 1500 steps, ten records; 512 unseen tasks; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, unseen=unseen, steps=steps, records=records, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of training steps."""
        return self.recorded_steps

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The three quantities of the reference, from spectra and powers of matrices."""
        product = partial(jnp.einsum, precision="highest")
        eigenvalues, vectors = jnp.linalg.eigh(self.mean)
        gains = self.reference(eigenvalues)
        deviations = jnp.abs(1 - gains * eigenvalues)
        matrix = product("ik,k,jk->ij", vectors, gains, vectors)
        iteration = jnp.eye(len(gains), dtype=self.dtype)[None] - product("ij,tjk->tik", matrix, self.unseen)
        risk = jnp.mean(jnp.sum(jnp.linalg.matrix_power(iteration, self.depth) ** 2, axis=(1, 2))) / len(gains)
        found = {"gain_error": jnp.mean(deviations), "contraction": jnp.max(deviations), "unseen_risk": risk}
        return {name: Curve(grid, jnp.full_like(grid, value)) for name, value in found.items()}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Gains and eigenvalues of the saved matrices, and the risk of their iterates, one solution per unseen task."""
        tasks, size = self.unseen.shape[:2]
        solutions = jax.random.normal(key, (tasks * size,), self.dtype).reshape(tasks, size)
        right_hand_sides = apply_operators(self.unseen, solutions)
        eigenvalues, vectors = jnp.linalg.eigh(self.mean)

        def of(preconditioner):
            gains = jnp.einsum("ik,ij,jk->k", vectors, preconditioner, vectors, precision="highest")
            spectrum = jnp.linalg.eigvals(jnp.matmul(preconditioner, self.mean, precision="highest"))
            initial = jnp.zeros_like(solutions)
            iterates = trajectory(preconditioner, self.unseen, right_hand_sides, initial, depth=3 * self.depth // 4)
            gain_error = jnp.mean(jnp.abs(1 - gains * eigenvalues))
            return gain_error, jnp.max(jnp.abs(1 - spectrum)), depth_risk(iterates, solutions)[-1]

        found = jax.lax.map(of, self.preconditioners)
        return {name: Curve(grid, values) for name, values in zip(self.observables, found, strict=True)}

    def counterfeit(self) -> "LearnedPreconditioner":
        """The inverse of the mean operator in place of the start."""
        return dataclasses.replace(self, reference=_inverse)
