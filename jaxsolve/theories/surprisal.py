"""The surprisal of the alignment of several layers follows a Gamma law in which no dimension appears."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import ArrayLike, Key
from ..evidence import AbstractTheory, Kind, Law, LawRule, Samples
from ..feedback import SurprisalLaw, draw_squared_cosines, log_cap_fraction

LAYERS = (1, 2, 4, 8, 16)


class Surprisal(AbstractTheory):
    """`Σ_l −log Pr(Q'_l ≥ Q_l) ~ Gamma(L, 1)` for `L` independent layers, in every dimension.

    Squared cosines are drawn, and the chance that another draw aligns better is the area of a cap of the sphere in
    `D` dimensions. A wrong law of `Q`, or a tail that loses its digits, shows; drawing `−log U` with `U` uniform
    would test nothing. `L` layers are the first `L` of 16. The panel of each observable are the dimensions.

    The counterfeit has surprisals that are 5 % larger.

    Attributes
    ----------
    scale
        Of the Gamma law: 1.
    batch
        Draws in one replicate.
    """

    dimensions: Float[Array, " panel"]
    scale: Float[Array, ""]
    batch: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.LAW
    rule: ClassVar[LawRule] = LawRule()
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result B, proposition 1}
}"""
    statement: ClassVar[str] = (
        "The sum over L independent layers of minus the logarithm of the chance of a better alignment follows the "
        "Gamma law with shape L and scale 1, whatever the dimensions; for one layer it is exponential."
    )
    observables: ClassVar[tuple[str, ...]] = tuple(f"layers_{layers}" for layers in LAYERS)
    assumptions: ClassVar[tuple[str, ...]] = (
        "independent isotropic directions",
        "the feedback matrices of separate layers are independent",
    )
    breaks_when: ClassVar[str] = "Feedback matrices are tied across layers, or are not isotropic."
    effect: ClassVar[float] = 0.02

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        dimensions: tuple[int, ...] = (64, 4096),
        batch: int = 250,
        replicates: int = 80,
    ) -> "Surprisal":
        """Twenty thousand draws of 16 layers at two dimensions."""
        return cls(
            dimensions=jnp.asarray(dimensions, dtype),
            scale=jnp.ones((), dtype),
            batch=batch,
            replicates=replicates,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "Surprisal":
        """A hundred thousand draws at the four dimensions of the document."""
        return cls.quick(dtype=dtype, dimensions=(64, 256, 1024, 4096), replicates=400)

    def grid(self) -> Float[Array, " panel"]:
        """The dimensions."""
        return self.dimensions

    def predict(self, grid: Float[Array, " panel"]) -> dict[str, Law]:
        """The Gamma law, the same for every dimension."""
        laws = {}
        for name, layers in zip(self.observables, LAYERS, strict=True):
            mean, variance = (jnp.broadcast_to(layers * self.scale**power, grid.shape) for power in (1, 2))
            laws[name] = Law(eqx.Partial(_cdf, SurprisalLaw(layers), self.scale), mean, variance)
        return laws

    def sample(self, grid: Float[Array, " panel"], *, key: Key) -> dict[str, Samples]:
        """Sums over the first layers of surprisals of drawn squared cosines."""
        dimensions = jnp.repeat(grid, LAYERS[-1])
        cosines = draw_squared_cosines(dimensions, self.batch, key=key)
        surprisal = -log_cap_fraction(cosines, jnp.broadcast_to(dimensions[None], cosines.shape))
        sums = jnp.cumsum(surprisal.reshape(self.batch, grid.size, LAYERS[-1]), axis=2)
        return {name: Samples(sums[:, :, layers - 1]) for name, layers in zip(self.observables, LAYERS, strict=True)}

    def counterfeit(self) -> "Surprisal":
        """Five percent more surprisal per layer."""
        return eqx.tree_at(lambda theory: theory.scale, self, 1.05 * self.scale)


def _cdf(law: SurprisalLaw, scale: ArrayLike, surprisal: ArrayLike) -> Array:
    return jnp.asarray(law.cdf(np.asarray(surprisal) / np.asarray(scale)))
