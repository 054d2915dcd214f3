"""Laws of the squared cosine of structured feedback: as for isotropic feedback where targets are uniform."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import ArrayLike, Key
from ..evidence import AbstractTheory, Kind, Law, LawRule, Samples
from ..feedback import (
    IsotropicFeedback,
    LowRankFeedback,
    OrthogonalFeedback,
    RandomAxisFeedback,
    SignFeedback,
    SparseFeedback,
    SquaredCosineLaw,
    SubspaceFeedback,
)

SHAPE = (8, 16)
SUBSPACE = 64

ENSEMBLES = (
    (IsotropicFeedback(SHAPE), False),
    (OrthogonalFeedback(SHAPE), False),
    (SubspaceFeedback(SHAPE, rank=SUBSPACE), False),
    (SignFeedback(SHAPE), True),
    (LowRankFeedback(SHAPE, rank=1), True),
    (SparseFeedback(SHAPE, entries=8), True),
    (RandomAxisFeedback(SHAPE), True),
)
"""Ensembles of 128 entries, and whether the target is uniform; else it is the first entry."""

DIMENSIONS = (128.0, 16.0, SUBSPACE, 128.0, 128.0, 128.0, 128.0)
SCALES = (1.0, 8.0, 1.0, 1.0, 1.0, 1.0, 1.0)
"""The squared cosine over what is `Beta(1/2, (m − 1)/2)`: `m` and the inverse factor."""


class CoverageLaw(AbstractTheory):
    """The squared cosine with a uniform target is `Beta(1/2, (D − 1)/2)` for every law of unit feedback.

    Ensembles differ for a fixed target. With the first entry as the target and matrices of 8 by 16, isotropic feedback
    has the same law; 8 times the squared cosine of an orthogonal matrix is `Beta(1/2, 15/2)`, with the same mean; and
    feedback in a subspace of 64 entries that contains the target is `Beta(1/2, 63/2)`, with twice the mean. Laws with
    atoms, of signs and of sparse matrices with a fixed target, are left out.

    The counterfeit has 10 % too few dimensions.

    Attributes
    ----------
    members
        Numbers of the ensembles, from 1.
    dimension_ratio
        What the prediction multiplies dimensions with: 1.
    batch
        Draws in one replicate.
    """

    members: Float[Array, " panel"]
    dimension_ratio: Float[Array, ""]
    batch: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.LAW
    rule: ClassVar[LawRule] = LawRule()
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result C, coverage of initialisations}
}"""
    statement: ClassVar[str] = (
        "The squared cosine of unit feedback of any law with an independent uniform target is Beta(1/2, (D - 1)/2); "
        "for a fixed target the laws of isotropic, orthogonal and subspace feedback differ, and are known."
    )
    observables: ClassVar[tuple[str, ...]] = ("squared_cosine",)
    assumptions: ClassVar[tuple[str, ...]] = ("targets and feedback are independent",)
    breaks_when: ClassVar[str] = "A fixed target meets feedback with few directions: the law then has atoms."
    effect: ClassVar[float] = 0.02

    @classmethod
    def quick(cls, *, dtype: jax.typing.DTypeLike = float, batch: int = 200, replicates: int = 100) -> "CoverageLaw":
        """Twenty thousand draws of each ensemble."""
        return cls(
            members=jnp.arange(1, len(ENSEMBLES) + 1, dtype=dtype),
            dimension_ratio=jnp.ones((), dtype),
            batch=batch,
            replicates=replicates,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "CoverageLaw":
        """A hundred thousand draws."""
        return cls.quick(dtype=dtype, replicates=500)

    def grid(self) -> Float[Array, " panel"]:
        """Numbers of the ensembles."""
        return self.members

    def predict(self, grid: Float[Array, " panel"]) -> dict[str, Law]:
        """Beta laws, scaled."""
        law = SquaredCosineLaw(np.asarray(DIMENSIONS) * float(self.dimension_ratio))
        mean = jnp.asarray(law.mean / np.asarray(SCALES), self.dtype)
        variance = jnp.asarray(law.variance / np.asarray(SCALES) ** 2, self.dtype)
        return {"squared_cosine": Law(eqx.Partial(_cdf, law), mean, variance)}

    def sample(self, grid: Float[Array, " panel"], *, key: Key) -> dict[str, Samples]:
        """Squared cosines of ``batch`` draws with the target of the ensemble."""
        size = SHAPE[0] * SHAPE[1]
        drawn = jax.random.normal(key, (3 * self.batch * size,), self.dtype).reshape(self.batch, 3 * size)
        targets, noise = drawn[:, :size], drawn[:, size:]
        targets = targets / jnp.linalg.norm(targets, axis=1, keepdims=True)
        columns = []
        for ensemble, uniform in ENSEMBLES:
            matrices = jax.vmap(ensemble.from_noise)(noise[:, : ensemble.noise_size])
            directions = matrices.reshape(self.batch, size)
            columns.append((jnp.sum(directions * targets, axis=1) if uniform else directions[:, 0]) ** 2)
        return {"squared_cosine": Samples(jnp.stack(columns, axis=1))}

    def counterfeit(self) -> "CoverageLaw":
        """Ten percent too few dimensions."""
        return eqx.tree_at(lambda theory: theory.dimension_ratio, self, 0.9 * self.dimension_ratio)


def _cdf(law: SquaredCosineLaw, squared_cosine: ArrayLike) -> Array:
    return jnp.asarray(law.cdf(np.minimum(np.asarray(squared_cosine, float) * np.asarray(SCALES)[None], 1)))
