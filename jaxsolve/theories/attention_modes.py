"""Attention in the eigenmodes of the mean operator: more structure after training, and what alignment is worth."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, BoundRule, Curve, Kind
from ..preconditioners import SoftmaxAttention, position_tokens
from ..solver import apply_operators, pretrain, wishart_operators

INSTANCE_SEED = 53


class AttentionModes(AbstractTheory):
    """Training concentrates attention on the diagonal of the eigenmodes; aligned spectra correct most per layer.

    The preconditioner `P = ρ I + Σ_h γ_h A_h` has the heads' part `A = Σ_h γ_h A_h`. In the eigenvectors `V` of the
    mean operator `H̄`, the share of `Σ_{ij} |(Vᵀ A V)_ij|` that lies off the diagonal is, at every record, at most what
    it was before training.

    One layer moves the state along the residual by `E[rᵀ A r] = tr(A R)`, `R = E[r rᵀ]`. Among all matrices with the
    singular values of `A` the largest such correction is the one of von Neumann's trace inequality,

        tr(A R) ≤ Σ_k σ_k(A) λ_k(R),

    both in decreasing order, reached where queries and keys are aligned with the eigenvectors of `R`. The residuals
    are those of the first layer, `r = H z*` with `z* ~ N(0, I)` for the operators of the run, so that
    `R = mean_i H_i H_iᵀ`; the measurement averages over drawn solutions and the bound is loosened by nothing.

    Operators are `S^{1/2} W S^{1/2}`, `W` a Wishart matrix over its `8 K` degrees of freedom, `S` from 0.1 to 1,
    equally spaced in the logarithm. The counterfeit pairs the spectra in opposite order.

    Attributes
    ----------
    heads
        `A` before training and at every record.
    recorded_steps
        Numbers of training steps, without the first.
    operators
        `H` of the training tasks.
    opposite
        Whether the spectra are paired in opposite order.
    """

    heads: Float[Array, "saved size size"]
    recorded_steps: Float[Array, " records"]
    operators: Float[Array, "tasks size size"]
    opposite: bool = eqx.field(static=True, default=False)
    replicates: int = eqx.field(static=True, default=16)

    kind: ClassVar[Kind] = Kind.BOUND
    rule: ClassVar[BoundRule] = BoundRule()
    source: ClassVar[str] = """@book{horn2013matrix,
  author = {Horn, Roger A. and Johnson, Charles R.},
  title = {Matrix Analysis},
  edition = {2},
  publisher = {Cambridge University Press},
  year = {2013},
}"""
    statement: ClassVar[str] = (
        "The share of absolute entries off the diagonal of softmax attention, in the eigenvectors of the mean "
        "operator, stays below its start during training, and the mean correction r'Ar along first residuals is at "
        "most the sum of products of singular values of A and eigenvalues of E[rr'], both in decreasing order."
    )
    observables: ClassVar[tuple[str, ...]] = ("off_diagonal", "correction")
    assumptions: ClassVar[tuple[str, ...]] = ("softmax attention on ordered position tokens", "first residuals H z*")
    breaks_when: ClassVar[str] = "The mean operator has no distinct eigenvalues, and thus no eigenmodes of its own."
    effect: ClassVar[float] = 0.1

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 16,
        tasks: int = 32,
        depth: int = 4,
        steps: int = 200,
        records: int = 4,
        learning_rate: float = 1e-2,
        instance_seed: int = INSTANCE_SEED,
    ) -> "AttentionModes":
        """Two heads on 32 tasks of 16 unknowns, 200 steps, four records."""
        random = np.random.default_rng(instance_seed)
        factors = random.standard_normal((tasks, size, 8 * size))
        operators = jnp.asarray(wishart_operators(factors, np.logspace(-1, 0, size)), dtype)
        solutions = jnp.asarray(random.standard_normal((tasks, size)), dtype)
        start = SoftmaxAttention.initialise(
            position_tokens(size, dtype=dtype), heads=2, key=jax.random.key(instance_seed)
        )
        run = pretrain(
            start,
            operators,
            apply_operators(operators, solutions),
            jnp.zeros_like(solutions),
            solutions,
            depth=depth,
            optimizer=optax.adam(optax.cosine_decay_schedule(learning_rate, steps)),
            steps=steps,
            observe=lambda attention: attention.matrix(operators) - attention.skip * jnp.eye(size, dtype=dtype),
            record_every=steps // records,
        )
        return cls(heads=run.records, recorded_steps=run.recorded_steps[1:].astype(dtype), operators=operators)

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, tasks: int = 256, steps: int = 1500, records: int = 10, **options
    ) -> "AttentionModes":
        """256 tasks, 1500 steps, ten records; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, steps=steps, records=records, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of training steps."""
        return self.recorded_steps

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The share before training, and the trace inequality."""
        moment = jnp.mean(self._squares(), axis=0)
        eigenvalues = jnp.linalg.eigvalsh(moment)
        values = jnp.linalg.svd(self.heads[1:], compute_uv=False)
        paired = eigenvalues if self.opposite else eigenvalues[::-1]
        start = self._off_diagonal(self.heads[0])
        return {
            "off_diagonal": Curve(grid, jnp.full_like(grid, start)),
            "correction": Curve(grid, jnp.sum(values * paired[None], axis=1)),
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Shares of the records, and corrections along drawn residuals over their own second moment."""
        tasks, size = self.operators.shape[:2]
        draws = 16
        solutions = jax.random.normal(key, (draws * tasks * size,), self.dtype).reshape(draws, tasks, size)
        # Solutions are made exactly white, so that no excess of a finite sample counts as a violation.
        factors = jnp.linalg.cholesky(jnp.einsum("dti,dtj->tij", solutions, solutions, precision="highest") / draws)
        white = jax.scipy.linalg.solve_triangular(factors, jnp.moveaxis(solutions, 0, 2), lower=True)
        residuals = jnp.einsum("tij,tjd->tdi", self.operators, white, precision="highest")
        corrections = jnp.einsum("tdi,sij,tdj->s", residuals, self.heads[1:], residuals, precision="highest")
        return {
            "off_diagonal": Curve(grid, jax.lax.map(self._off_diagonal, self.heads[1:])),
            "correction": Curve(grid, corrections / (draws * tasks)),
        }

    def counterfeit(self) -> "AttentionModes":
        """Spectra in opposite order."""
        return dataclasses.replace(self, opposite=True)

    def _squares(self) -> Float[Array, "tasks size size"]:
        return jnp.einsum("tij,tkj->tik", self.operators, self.operators, precision="highest")

    def _off_diagonal(self, heads: Float[Array, "size size"]) -> Float[Array, ""]:
        vectors = jnp.linalg.eigh(jnp.mean(self.operators, axis=0))[1]
        modes = jnp.abs(jnp.einsum("ik,ij,jl->kl", vectors, heads, vectors, precision="highest"))
        return 1 - jnp.trace(modes) / jnp.sum(modes)
