"""Without a prior no law of feedback covers its worst target better than isotropic feedback does."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, BoundRule, Curve, Kind
from ..feedback import (
    AnisotropicFeedback,
    FixedAxisFeedback,
    IsotropicFeedback,
    LowRankFeedback,
    OrthogonalFeedback,
    RandomAxisFeedback,
    SignFeedback,
    SparseFeedback,
    SubspaceFeedback,
)

SHAPE = (4, 8)
CONDITION = 10.0
"""Largest over smallest variance of the anisotropic ensemble; the document does not state its own."""


class MinimaxFeedback(AbstractTheory):
    """`λ_min(E[b bᵀ]) ≤ 1/D` for unit feedback `b`, whatever its law: the worst mean squared cosine with a target.

    The smallest eigenvalue of a matrix of trace 1 is at most its mean eigenvalue. Isotropic feedback reaches `1/D`,
    and so do signs, orthogonal matrices, products of low rank, sparse matrices and single entries at random places. A
    fixed entry or a fixed subspace covers some target not at all.

    Eigenvalues of second moments over ``draws`` draws are measured, which lie below those of the law by a share of
    about `2 √(D/n)`: printed values such as 0.0291 for 1/32 are that bias of the sample. The counterfeit claims a
    value that is 20 % lower.

    Attributes
    ----------
    dimensions
        `D`, one point.
    variances
        Of the entries of the anisotropic ensemble.
    trace
        Of the second moment, 1.
    draws
        How many draws are averaged.
    """

    dimensions: Float[Array, " points"]
    variances: Float[Array, " dimension"]
    trace: Float[Array, ""]
    draws: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.BOUND
    rule: ClassVar[BoundRule] = BoundRule(relative=1e-5)
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result C, theorem 2}
}"""
    statement: ClassVar[str] = (
        "For unit feedback directions of any law in D dimensions, the mean squared cosine with the worst target, the "
        "smallest eigenvalue of the second moment of the directions, is at most 1/D."
    )
    observables: ClassVar[tuple[str, ...]] = (
        "isotropic",
        "sign",
        "orthogonal",
        "low_rank",
        "sparse",
        "random_axis",
        "anisotropic",
        "subspace",
        "fixed_axis",
    )
    assumptions: ClassVar[tuple[str, ...]] = ("the target is fixed before the feedback is drawn",)
    breaks_when: ClassVar[str] = "The feedback depends on the target, as after training."
    effect: ClassVar[float] = 1.0

    @classmethod
    def quick(cls, *, dtype: jax.typing.DTypeLike = float, draws: int = 5000) -> "MinimaxFeedback":
        """Five thousand draws of each ensemble, matrices of 4 by 8."""
        dimension = SHAPE[0] * SHAPE[1]
        return cls(
            dimensions=jnp.asarray([dimension], dtype),
            variances=jnp.asarray(np.geomspace(CONDITION, 1, dimension), dtype),
            trace=jnp.ones((), dtype),
            draws=draws,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "MinimaxFeedback":
        """22 500 draws, near what the bias of the printed values tells of theirs."""
        return cls.quick(dtype=dtype, draws=22_500)

    def grid(self) -> Float[Array, " points"]:
        """The dimension."""
        return self.dimensions

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """`tr M / D` for all."""
        return {name: Curve(grid, self.trace / grid) for name in self.observables}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Smallest eigenvalues of sampled second moments, all from the same random numbers."""
        ensembles = (
            IsotropicFeedback(SHAPE),
            SignFeedback(SHAPE),
            OrthogonalFeedback(SHAPE),
            LowRankFeedback(SHAPE, rank=1),
            SparseFeedback(SHAPE, entries=4),
            RandomAxisFeedback(SHAPE),
            AnisotropicFeedback(SHAPE, self.variances),
            SubspaceFeedback(SHAPE, rank=16),
            FixedAxisFeedback(SHAPE),
        )
        size = max(ensemble.noise_size for ensemble in ensembles)
        noise = jax.random.normal(key, (self.draws * size,), self.dtype).reshape(self.draws, size)
        moments = []
        for ensemble in ensembles:
            matrices = jax.vmap(ensemble.from_noise)(noise[:, : ensemble.noise_size])
            directions = matrices.reshape(self.draws, ensemble.dimension)
            moments.append(jnp.matmul(directions.T, directions, precision="highest") / self.draws)
        smallest = jnp.linalg.eigvalsh(jnp.stack(moments))[:, :1]
        return {name: Curve(grid, value) for name, value in zip(self.observables, smallest, strict=True)}

    def counterfeit(self) -> "MinimaxFeedback":
        """A value that is 20 % lower."""
        return eqx.tree_at(lambda theory: theory.trace, self, 0.8 * self.trace)
