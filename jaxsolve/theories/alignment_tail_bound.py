"""The chance of an alignment lies under an exponential in the dimension."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, BoundRule, Curve, Kind
from ..feedback import log_cap_fraction


class AlignmentTailBound(AbstractTheory):
    """`Pr(Q ≥ q) ≤ 2 exp(−(D − 1) q / 2)` for all `q` in [0, 1], compared in logarithms.

    The document has the sign `≲`; we found no exception. In the far tail the bound is loose by the whole difference of
    `½ (D − 1) log(1/(1 − q))` and `½ (D − 1) q`. The counterfeit has an exponent that is 10 % too large.

    Attributes
    ----------
    rate
        What multiplies `(D − 1) q` in the exponent: 1/2.
    """

    dimensions: Float[Array, " points"]
    squared_cosines: Float[Array, " values"]
    rate: Float[Array, ""]
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.BOUND
    rule: ClassVar[BoundRule] = BoundRule()
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result A, theorem 1}
}"""
    statement: ClassVar[str] = (
        "The chance that the squared cosine of independent isotropic directions in D dimensions reaches q is at most "
        "2 exp(-(D - 1) q / 2), for every q in [0, 1] and D of at least 2."
    )
    observables: ClassVar[tuple[str, ...]] = ("log_chance",)
    assumptions: ClassVar[tuple[str, ...]] = ("one of the two directions is uniform on the unit sphere",)
    breaks_when: ClassVar[str] = "The directions of the feedback are not uniform."
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        dimensions: tuple[int, ...] = (2, 3, 4, 16, 64, 256, 1024, 4096, 10**6),
        values: int = 60,
    ) -> "AlignmentTailBound":
        """60 values of `q` from 1e-5 to 0.999, at nine dimensions."""
        half = values // 2
        points = np.concatenate([np.geomspace(1e-5, 0.1, half), np.linspace(0.11, 0.999, values - half)])
        return cls(
            dimensions=jnp.asarray(dimensions, dtype),
            squared_cosines=jnp.asarray(points, dtype),
            rate=jnp.asarray(0.5, dtype),
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "AlignmentTailBound":
        """2000 values of `q`, at every dimension up to 64 and at powers of two beyond."""
        dimensions = (*range(2, 65), *(2**power for power in range(7, 21)))
        return cls.quick(dtype=dtype, dimensions=dimensions, values=2000)

    def grid(self) -> Float[Array, " points"]:
        """The dimensions."""
        return self.dimensions

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Logarithm of the bound."""
        return {"log_chance": Curve(grid, math.log(2) - self.rate * (grid[:, None] - 1) * self.squared_cosines[None])}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Logarithm of the exact chance, an area on the sphere."""
        del key
        arguments = jnp.broadcast_arrays(self.squared_cosines[None], grid[:, None])
        return {"log_chance": Curve(grid, log_cap_fraction(*arguments))}

    def counterfeit(self) -> "AlignmentTailBound":
        """Ten percent more in the exponent."""
        return eqx.tree_at(lambda theory: theory.rate, self, 1.1 * self.rate)
