"""How often an alignment happens by chance, on one layer and on several at once."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..feedback import SquaredCosineLaw, draw_squared_cosines


class CapacityCost(AbstractTheory):
    """`Pr(Q ≥ c/D) = exp(−C(c/D))`, and `Pr(all Q_l ≥ c/D) = exp(−Σ_l C_l)` for layers with independent feedback.

    Frequencies among draws are compared with exponentials of exact costs. In nats a frequency of `p` among `n` draws
    has the standard error `((1 − p) / (n p))^{1/2}`: the error of an empirical cost is set by how far into the tail
    one counts, 0.08 nats at `c = 10` for a hundred thousand draws.

    The counterfeit has costs that are 10 % too large.

    Attributes
    ----------
    thresholds, joint_thresholds
        `c` for one layer, and for all layers at once.
    cost_factor
        What the prediction multiplies costs with: 1.
    layers
        Number of layers of the joint event, all of one dimension.
    batch
        Draws in one replicate.
    """

    dimensions: Float[Array, " points"]
    thresholds: Float[Array, " values"]
    joint_thresholds: Float[Array, " joint"]
    cost_factor: Float[Array, ""]
    batch: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True)
    layers: int = eqx.field(static=True, default=4)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, results A and B}
}"""
    statement: ClassVar[str] = (
        "The share of random feedback whose squared cosine reaches c/D is the exponential of minus the cost in nats; "
        "for all of several layers with independent feedback the shares multiply and the costs add."
    )
    observables: ClassVar[tuple[str, ...]] = ("survival", "joint_survival")
    assumptions: ClassVar[tuple[str, ...]] = (
        "independent isotropic directions",
        "the feedback matrices of separate layers are independent",
    )
    breaks_when: ClassVar[str] = "Feedback matrices are tied across layers."
    effect: ClassVar[float] = 0.05

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        dimensions: tuple[int, ...] = (64, 4096),
        batch: int = 1000,
        replicates: int = 100,
    ) -> "CapacityCost":
        """A hundred thousand draws at two dimensions; `c` from 0.5 to 10 for one layer, to 2 for four layers."""
        return cls(
            dimensions=jnp.asarray(dimensions, dtype),
            thresholds=jnp.asarray(np.arange(1, 21) / 2, dtype),
            joint_thresholds=jnp.asarray(np.arange(1, 9) / 4, dtype),
            cost_factor=jnp.ones((), dtype),
            batch=batch,
            replicates=replicates,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "CapacityCost":
        """A hundred thousand draws at the seven dimensions of the document."""
        return cls.quick(dtype=dtype, dimensions=(64, 128, 256, 512, 1024, 2048, 4096))

    def grid(self) -> Float[Array, " points"]:
        """The dimensions."""
        return self.dimensions

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Exact costs, exponentiated."""
        law = SquaredCosineLaw(grid[:, None])

        def chance(thresholds, layers):
            cost = -layers * law.log_survival(thresholds[None] / grid[:, None])
            return Curve(grid, jnp.exp(-self.cost_factor * jnp.asarray(cost, self.dtype)))

        return {"survival": chance(self.thresholds, 1), "joint_survival": chance(self.joint_thresholds, self.layers)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Frequencies among ``batch`` draws of all layers; the first layer stands for one layer."""
        drawn = draw_squared_cosines(jnp.repeat(grid, self.layers), self.batch, key=key)
        scaled = drawn.reshape(self.batch, grid.size, self.layers) * grid[None, :, None]
        least = jnp.min(scaled, axis=2)

        def frequency(values, thresholds):
            reached = values[:, :, None] >= thresholds[None, None, :]
            return Curve(grid, jnp.mean(reached.astype(self.dtype), axis=0))

        return {
            "survival": frequency(scaled[:, :, 0], self.thresholds),
            "joint_survival": frequency(least, self.joint_thresholds),
        }

    def counterfeit(self) -> "CapacityCost":
        """Costs ten percent too large."""
        return eqx.tree_at(lambda theory: theory.cost_factor, self, 1.1 * self.cost_factor)
