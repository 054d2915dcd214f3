"""The cost of an alignment at chance level tends to a constant that is not half the threshold."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, LimitRule
from ..feedback import chance_threshold_cost, log_cap_fraction


def _half(threshold: Float[Array, " values"]) -> Float[Array, " values"]:
    """The leading order `c / 2`."""
    return threshold / 2


class ChanceThreshold(AbstractTheory):
    """`Pr(Q ≥ c/D) → Pr(χ²_1 ≥ c)` as `1/D`, so that the cost of `L` layers tends to `L` times a constant.

    `D Q` tends in law to a chi-squared variable with one degree of freedom. At a threshold of `c` times the mean one
    layer costs `−log Pr(χ²_1 ≥ c)` nats whatever its width, 1.148 at `c = 1` and 1.850 at `c = 2`, and `L` layers `L`
    times as much. The document prints `c/2`, which is the leading order for large `c` only; the option
    ``leading_order`` puts it in the place of the constant, where it is found to be wrong, and so does the counterfeit.

    Attributes
    ----------
    thresholds
        `c`, in units of the mean `1/D`.
    layers
        Number of layers of the joint cost; one has `D` entries, the next `2 D`, and so on in turn.
    limit
        The cost of one layer as a function of `c`.
    """

    dimensions: Float[Array, " points"]
    thresholds: Float[Array, " values"]
    layers: int = eqx.field(static=True, default=16)
    limit: Callable = eqx.field(static=True, default=chance_threshold_cost)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=-1.0, band=0.1)
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, results A and B}
}"""
    statement: ClassVar[str] = (
        "At a squared cosine of c/D the chance tends to that of a chi-squared variable with one degree of freedom "
        "above c, with an error of order 1/D; the cost is minus its logarithm, not c/2, and the cost of several layers "
        "that number of times as much."
    )
    observables: ClassVar[tuple[str, ...]] = ("chance", "cost", "joint_cost")
    assumptions: ClassVar[tuple[str, ...]] = ("independent isotropic directions", "c is held fixed as D grows")
    breaks_when: ClassVar[str] = "The squared cosine is held fixed; the cost then grows with the dimension."
    effect: ClassVar[float] = 0.1

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        dimensions: tuple[int, ...] = (128, 256, 512, 1024, 2048),
        thresholds: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 14.0),
        leading_order: bool = False,
    ) -> "ChanceThreshold":
        """Five thresholds, dimensions 128 to 2048.

        Parameters
        ----------
        dtype
            Of all arrays.
        dimensions, thresholds
            `D` and `c`.
        leading_order
            Whether to predict `c/2`, which is false.
        """
        return cls(
            dimensions=jnp.asarray(dimensions, dtype),
            thresholds=jnp.asarray(thresholds, dtype),
            limit=_half if leading_order else chance_threshold_cost,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, **options) -> "ChanceThreshold":
        """Dimensions 128 to 65536; the other options are those of ``quick``."""
        options.setdefault("dimensions", tuple(2**power for power in range(7, 17)))
        return cls.quick(dtype=dtype, **options)

    def grid(self) -> Float[Array, " points"]:
        """The dimensions."""
        return self.dimensions

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """One constant per threshold, at every dimension."""
        cost = jnp.broadcast_to(self.limit(self.thresholds)[None], (grid.size, self.thresholds.size))
        return {
            "chance": Curve(grid, jnp.exp(-cost)),
            "cost": Curve(grid, cost),
            "joint_cost": Curve(grid, self.layers * cost),
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Areas on the sphere."""
        del key
        one, other = (self._cost(size) for size in (grid, 2 * grid))
        joint = (self.layers - self.layers // 2) * one + self.layers // 2 * other
        return {"chance": Curve(grid, jnp.exp(-one)), "cost": Curve(grid, one), "joint_cost": Curve(grid, joint)}

    def _cost(self, dimensions):
        values, sizes = jnp.broadcast_arrays(self.thresholds[None] / dimensions[:, None], dimensions[:, None])
        return -log_cap_fraction(values, sizes)

    def counterfeit(self) -> "ChanceThreshold":
        """Half the threshold."""
        return dataclasses.replace(self, limit=_half)
