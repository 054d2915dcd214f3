"""Squared cosines over an orthonormal basis add up to one: covering one target better is paid for elsewhere."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..feedback import AnisotropicFeedback, FixedAxisFeedback, IsotropicFeedback

INSTANCE_SEED = 41


class CoverageTradeOff(AbstractTheory):
    """`Σ_i (a_iᵀ b)² = 1` for unit feedback `b` and any orthonormal basis `a_1, …, a_D`, for every single draw.

    The basis is a random rotation. The counterfeit leaves one direction out.

    Attributes
    ----------
    members
        Numbers of the draws, from 1.
    basis
        Orthonormal rows.
    variances
        Of the entries of the anisotropic ensemble.
    targets
        How many directions the prediction counts, over `D`: 1.
    """

    members: Float[Array, " points"]
    basis: Float[Array, "dimension dimension"]
    variances: Float[Array, " dimension"]
    targets: Float[Array, ""]
    shape: tuple[int, int] = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=256.0)
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result C}
}"""
    statement: ClassVar[str] = (
        "The squared cosines of one unit feedback direction with the D members of an orthonormal basis add up to one."
    )
    observables: ClassVar[tuple[str, ...]] = ("isotropic", "anisotropic", "fixed_axis")
    assumptions: ClassVar[tuple[str, ...]] = ("the targets are orthonormal and complete",)
    breaks_when: ClassVar[str] = "The targets are not orthogonal, or span less than the whole space."
    effect: ClassVar[float] = 1e-3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        shape: tuple[int, int] = (8, 16),
        draws: int = 8,
        instance_seed: int = INSTANCE_SEED,
    ) -> "CoverageTradeOff":
        """Eight draws of three ensembles of 128 entries."""
        size = shape[0] * shape[1]
        basis, _ = np.linalg.qr(np.random.default_rng(instance_seed).standard_normal((size, size)))
        return cls(
            members=jnp.arange(1, draws + 1, dtype=dtype),
            basis=jnp.asarray(basis, dtype),
            variances=jnp.asarray(np.geomspace(10, 1, size), dtype),
            targets=jnp.ones((), dtype),
            shape=shape,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "CoverageTradeOff":
        """200 draws of ensembles of 1024 entries."""
        return cls.quick(dtype=dtype, shape=(32, 32), draws=200)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of the draws."""
        return self.members

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """One."""
        return {name: Curve(grid, self.targets + 0 * grid) for name in self.observables}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Sums over the basis, one per draw."""
        ensembles = (
            IsotropicFeedback(self.shape),
            AnisotropicFeedback(self.shape, self.variances),
            FixedAxisFeedback(self.shape),
        )
        size = self.variances.size
        noise = jax.random.normal(key, (grid.size * size,), self.dtype).reshape(grid.size, size)
        curves = {}
        for name, ensemble in zip(self.observables, ensembles, strict=True):
            matrices = jax.vmap(ensemble.from_noise)(noise[:, : ensemble.noise_size])
            cosines = jnp.matmul(matrices.reshape(grid.size, -1), self.basis.T, precision="highest")
            curves[name] = Curve(grid, jnp.sum(cosines**2, axis=1))
        return curves

    def counterfeit(self) -> "CoverageTradeOff":
        """One direction of `D` is left out."""
        return eqx.tree_at(lambda theory: theory.targets, self, self.targets * (1 - 1 / self.variances.size))
