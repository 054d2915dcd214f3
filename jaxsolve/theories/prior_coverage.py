"""With a prior over targets the mean squared cosine is a trace, and structured feedback can win."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import feedback
from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..feedback import (
    AbstractFeedbackEnsemble,
    AnisotropicFeedback,
    FixedAxisFeedback,
    IsotropicFeedback,
    OrthogonalFeedback,
    SignFeedback,
    SubspaceFeedback,
)

SHAPE = (4, 8)
FAVOURED = 8
"""Entries that the prior favours."""


def _uniform(ensemble: AbstractFeedbackEnsemble, prior: Float[np.ndarray, "dimension dimension"]) -> float:
    """The value for uniform targets, whatever the prior."""
    del prior
    return 1 / ensemble.dimension


class PriorCoverage(AbstractTheory):
    """`E_{a,b}[(aᵀ b)²] = tr(Σ_A M)` for targets with `Σ_A = E[a aᵀ]` and independent feedback with `M = E[b bᵀ]`.

    A share `s` of the targets is uniform on the sphere of the first 8 of 32 entries, the rest on that of the others.
    At `s = 1/4` the targets have `Σ_A = I / D` and all ensembles tie at `1/D`. With more, feedback in the favoured
    subspace wins, up to `1/8`, and an isotropic ensemble stays at `1/D`.

    The counterfeit has `1/D` for all.

    Attributes
    ----------
    shares
        `s`.
    variances
        Of the entries of the anisotropic ensemble.
    value
        The prediction from the ensemble and `Σ_A`.
    batch
        Pairs of targets and feedback in one replicate.
    """

    shares: Float[Array, " points"]
    variances: Float[Array, " dimension"]
    batch: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True)
    value: Callable = eqx.field(static=True, default=feedback.prior_coverage)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result C, prior-aware corollary}
}"""
    statement: ClassVar[str] = (
        "The mean squared cosine of random targets with independent unit feedback is the trace of the product of their "
        "second moments: 1/D for isotropic feedback under every prior and for every feedback under uniform targets."
    )
    observables: ClassVar[tuple[str, ...]] = (
        "isotropic",
        "sign",
        "orthogonal",
        "anisotropic",
        "subspace",
        "fixed_axis",
    )
    assumptions: ClassVar[tuple[str, ...]] = ("targets and feedback are independent",)
    breaks_when: ClassVar[str] = "The feedback is chosen after the target is known."
    effect: ClassVar[float] = 0.1

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        shares: tuple[float, ...] = (0.25, 0.5, 1.0),
        batch: int = 500,
        replicates: int = 100,
    ) -> "PriorCoverage":
        """Fifty thousand pairs for three priors."""
        return cls(
            shares=jnp.asarray(shares, dtype),
            variances=jnp.asarray(np.geomspace(10, 1, SHAPE[0] * SHAPE[1]), dtype),
            batch=batch,
            replicates=replicates,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "PriorCoverage":
        """Two hundred thousand pairs for six priors."""
        return cls.quick(dtype=dtype, shares=(0.0, 0.25, 0.5, 0.75, 0.9, 1.0), replicates=400)

    def grid(self) -> Float[Array, " points"]:
        """Shares of favoured targets."""
        return self.shares

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Traces of products of exact second moments."""
        size = SHAPE[0] * SHAPE[1]
        favoured = np.arange(size) < FAVOURED
        priors = [np.diag(np.where(favoured, s / FAVOURED, (1 - s) / (size - FAVOURED))) for s in np.asarray(grid)]
        return {
            name: Curve(grid, jnp.asarray([self.value(ensemble, prior) for prior in priors], self.dtype))
            for name, ensemble in self._ensembles().items()
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Means over pairs; all ensembles meet the same targets, and are made of the same random numbers."""
        choice, entries = jax.random.split(key)
        size = SHAPE[0] * SHAPE[1]
        normal, noise = jax.random.normal(entries, (2 * self.batch * size,), self.dtype).reshape(2, self.batch, size)
        uniform = jax.random.uniform(choice, (self.batch,), self.dtype)
        favoured = uniform[None, :] < grid[:, None]
        inside = (jnp.arange(size) < FAVOURED)[None, None, :] == favoured[:, :, None]
        targets = jnp.where(inside, normal[None], 0)
        targets = targets / jnp.linalg.norm(targets, axis=2, keepdims=True)
        curves = {}
        for name, ensemble in self._ensembles().items():
            matrices = jax.vmap(ensemble.from_noise)(noise[:, : ensemble.noise_size])
            cosines = jnp.einsum("pbd,bd->pb", targets, matrices.reshape(self.batch, size), precision="highest")
            curves[name] = Curve(grid, jnp.mean(cosines**2, axis=1))
        return curves

    def _ensembles(self) -> dict[str, AbstractFeedbackEnsemble]:
        ensembles = (
            IsotropicFeedback(SHAPE),
            SignFeedback(SHAPE),
            OrthogonalFeedback(SHAPE),
            AnisotropicFeedback(SHAPE, self.variances),
            SubspaceFeedback(SHAPE, rank=FAVOURED),
            FixedAxisFeedback(SHAPE),
        )
        return dict(zip(self.observables, ensembles, strict=True))

    def counterfeit(self) -> "PriorCoverage":
        """`1/D` for every law and prior."""
        return dataclasses.replace(self, value=_uniform)
