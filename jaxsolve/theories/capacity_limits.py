"""The cost of an alignment per dimension tends to a constant: it grows with the number of entries."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, LimitRule
from ..feedback import log_cap_fraction


class CapacityLimits(AbstractTheory):
    """`C(q) / D → ½ log(1/(1 − q))` for fixed `q`, and `C(q) / D − q/2 → 0` for `q = D^{−1/2}`.

    The difference is `½ log(π D q / 2) / D` and smaller terms, so that its slope over the dimension is −1 up to a
    logarithm. Networks of `L` layers of one width cost `L` times as much, `Θ(L D)`; the third observable takes the
    joint cost of ``layers`` layers per layer and dimension, with dimensions `D` and `2 D` in turn. In all three the
    leading order is no accurate value of the cost itself: at `D = 1024` and `q = 0.1` it misses two nats of 56.

    The counterfeit has a factor that is 10 % too large.

    Attributes
    ----------
    squared_cosines
        `q`, for fixed alignment.
    factor
        What the prediction is multiplied with: 1.
    """

    dimensions: Float[Array, " points"]
    squared_cosines: Float[Array, " values"]
    factor: Float[Array, ""]
    layers: int = eqx.field(static=True, default=16)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=-1.0, band=0.15)
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, results A and B}
}"""
    statement: ClassVar[str] = (
        "The cost of a fixed squared cosine q per dimension, in nats, tends to half of log(1/(1 - q)), and to q/2 "
        "where q shrinks as the root of the dimension; the error falls as 1/D up to a logarithm, and equally wide "
        "layers add up."
    )
    observables: ClassVar[tuple[str, ...]] = ("fixed_alignment", "small_alignment", "equal_width")
    assumptions: ClassVar[tuple[str, ...]] = ("independent isotropic directions",)
    breaks_when: ClassVar[str] = "The squared cosine is of the order 1/D; the cost is then of order 1."
    effect: ClassVar[float] = 0.15

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        dimensions: tuple[int, ...] = tuple(2**power for power in range(14, 21)),
    ) -> "CapacityLimits":
        """Dimensions 2^14 to 2^20, `q` from 0.05 to 0.8."""
        return cls(
            dimensions=jnp.asarray(dimensions, dtype),
            squared_cosines=jnp.asarray([0.05, 0.1, 0.2, 0.5, 0.8], dtype),
            factor=jnp.ones((), dtype),
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "CapacityLimits":
        """Dimensions 2^12 to 2^20."""
        return cls.quick(dtype=dtype, dimensions=tuple(2**power for power in range(12, 21)))

    def grid(self) -> Float[Array, " points"]:
        """The dimensions."""
        return self.dimensions

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The leading orders."""
        fixed = jnp.broadcast_to(-jnp.log1p(-self.squared_cosines)[None] / 2, (grid.size, self.squared_cosines.size))
        return {
            "fixed_alignment": Curve(grid, self.factor * fixed),
            "small_alignment": Curve(grid, self.factor * grid**-0.5 / 2),
            "equal_width": Curve(grid, self.factor * fixed),
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Areas on the sphere."""
        del key
        one, other = (self._cost(size) for size in (grid, 2 * grid))
        odd, even = self.layers - self.layers // 2, self.layers // 2
        entries = (odd + 2 * even) * grid[:, None]
        return {
            "fixed_alignment": Curve(grid, one / grid[:, None]),
            "small_alignment": Curve(grid, -log_cap_fraction(grid**-0.5, grid) / grid),
            "equal_width": Curve(grid, (odd * one + even * other) / entries),
        }

    def _cost(self, dimensions):
        values, sizes = jnp.broadcast_arrays(self.squared_cosines[None], dimensions[:, None])
        return -log_cap_fraction(values, sizes)

    def counterfeit(self) -> "CapacityLimits":
        """Ten percent too large."""
        return eqx.tree_at(lambda theory: theory.factor, self, 1.1 * self.factor)
