"""The mean of independent draws: a small theory to start from."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxsolve.evidence import AbstractTheory, Curve, Evidence, Kind, PopulationRule


class MeanOfDraws(AbstractTheory):
    """`E[c x²] = c σ²` for `x ~ N(0, σ²)`, over a grid of standard deviations `σ` at a fixed gain `c`."""

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@misc{mean-of-draws,
  title = {The mean of independent draws},
  note = {replace this entry by the source of your statement}
}"""
    statement: ClassVar[str] = "The mean of c x² over x ~ N(0, σ²) is c σ² (mean over draws, no factor 1/2)."
    observables: ClassVar[tuple[str, ...]] = ("second_moment",)
    assumptions: ClassVar[tuple[str, ...]] = ("draws are independent and Gaussian",)
    breaks_when: ClassVar[str] = "the draws have no second moment"
    effect: ClassVar[float] = 0.1

    gain: Float[Array, ""]
    replicates: int = eqx.field(static=True)

    @classmethod
    def quick(cls, *, dtype: jax.typing.DTypeLike = float) -> "MeanOfDraws":
        """Four thousand draws."""
        return cls(gain=jnp.asarray(1.5, dtype), replicates=4_000)

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "MeanOfDraws":
        """A hundred thousand draws."""
        return cls(gain=jnp.asarray(1.5, dtype), replicates=100_000)

    def grid(self) -> Float[Array, " points"]:
        """Standard deviations of the draws."""
        return jnp.linspace(0.5, 2.0, 4, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Evidence]:
        """The closed form `c σ²`."""
        return {"second_moment": Curve(grid, self.gain * grid**2)}

    def sample(self, grid: Float[Array, " points"], *, key: jax.Array) -> dict[str, Evidence]:
        """One draw at each standard deviation."""
        draw = grid * jax.random.normal(key, grid.shape, grid.dtype)
        return {"second_moment": Curve(grid, self.gain * draw**2)}

    def counterfeit(self) -> "MeanOfDraws":
        """The gain is 20 % too large."""
        return eqx.tree_at(lambda theory: theory.gain, self, 1.2 * self.gain)
