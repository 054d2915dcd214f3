"""The cost of an alignment is the negative logarithm of the share of the sphere in a cap."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..feedback import SquaredCosineLaw, log_cap_fraction


class CapVolume(AbstractTheory):
    """`C(q) = −log [1 − I_q(1/2, (D − 1)/2)]` is the logarithm of a volume: the cap's share of the sphere, inverted.

    The prediction takes incomplete beta functions and their asymptotic form; the measurement integrates the area of
    the sphere in `D` dimensions over the polar angle, up to `D = 10^6`, where a cap of `cos² ≥ 1/2` has a share of
    exp(−346580). The counterfeit has `D` in the place of `D − 1`.

    Attributes
    ----------
    squared_cosines
        `q` at each dimension.
    degrees
        What is added to `D` in the prediction: −1.
    """

    dimensions: Float[Array, " points"]
    squared_cosines: Float[Array, "points values"]
    degrees: Float[Array, ""]
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=256.0)
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result A, capacity cost}
}"""
    statement: ClassVar[str] = (
        "The cost of an alignment q in nats, minus the natural logarithm of the survival function of the squared "
        "cosine, is minus the logarithm of the share of the unit sphere in D dimensions with squared cosine q or more."
    )
    observables: ClassVar[tuple[str, ...]] = ("cost",)
    assumptions: ClassVar[tuple[str, ...]] = ("one of the two directions is uniform on the unit sphere",)
    breaks_when: ClassVar[str] = "The directions of the feedback are not uniform."
    effect: ClassVar[float] = 1e-3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        dimensions: tuple[int, ...] = (2, 4, 17, 64, 1024, 4096, 10**6),
        values: int = 24,
    ) -> "CapVolume":
        """24 values of `q` at seven dimensions: from 1e-3/D to 20/D, and from 0.05 to 0.95."""
        sizes = np.asarray(dimensions, float)[:, None]
        small = np.minimum(np.geomspace(1e-3, 20, values // 2)[None] / sizes, 0.99)
        large = np.broadcast_to(np.linspace(0.05, 0.95, values - values // 2), (len(dimensions), values - values // 2))
        return cls(
            dimensions=jnp.asarray(dimensions, dtype),
            squared_cosines=jnp.asarray(np.concatenate([small, large], axis=1), dtype),
            degrees=jnp.asarray(-1.0, dtype),
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "CapVolume":
        """400 values of `q`, at powers of two and at 10^6."""
        return cls.quick(dtype=dtype, dimensions=(*(2**power for power in range(1, 17)), 10**6), values=400)

    def grid(self) -> Float[Array, " points"]:
        """The dimensions."""
        return self.dimensions

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Incomplete beta functions, on the host."""
        law = SquaredCosineLaw((grid + (self.degrees + 1))[:, None])
        return {"cost": Curve(grid, jnp.asarray(-law.log_survival(self.squared_cosines), self.dtype))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Areas by quadrature over the polar angle."""
        del key
        dimensions = jnp.broadcast_to(grid[:, None], self.squared_cosines.shape)
        return {"cost": Curve(grid, -log_cap_fraction(self.squared_cosines, dimensions))}

    def counterfeit(self) -> "CapVolume":
        """One dimension too many."""
        return eqx.tree_at(lambda theory: theory.degrees, self, 0 * self.degrees)
