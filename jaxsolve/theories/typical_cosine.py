"""Random feedback is nearly orthogonal to what it replaces: cosines fall as the root of the dimension."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, LimitRule


class TypicalCosine(AbstractTheory):
    """The mean modulus of the cosine of independent isotropic directions tends to zero as `D^{−1/2}`.

    Gaussian vectors are formed, two of `D` entries per draw. The counterfeit tends to 0.02 instead.

    Attributes
    ----------
    limit
        What the mean modulus tends to: 0.
    largest
        The largest dimension.
    batch
        Pairs of vectors in one replicate.
    """

    dimensions: Float[Array, " points"]
    limit: Float[Array, ""]
    largest: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=-0.5, band=0.05)
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result A}
}"""
    statement: ClassVar[str] = (
        "The mean modulus of the Frobenius cosine of a random feedback matrix with an independent matrix of D entries "
        "tends to zero as one over the root of D."
    )
    observables: ClassVar[tuple[str, ...]] = ("mean_modulus",)
    assumptions: ClassVar[tuple[str, ...]] = ("independent isotropic directions",)
    breaks_when: ClassVar[str] = "Training has aligned the weights with the feedback."
    effect: ClassVar[float] = 0.05

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        dimensions: tuple[int, ...] = (16, 64, 256, 1024),
        replicates: int = 100,
    ) -> "TypicalCosine":
        """Dimensions 16 to 1024, ten thousand pairs each."""
        return cls(
            dimensions=jnp.asarray(dimensions, dtype),
            limit=jnp.zeros((), dtype),
            largest=max(dimensions),
            batch=100,
            replicates=replicates,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "TypicalCosine":
        """Dimensions 64 to 4096, twenty thousand pairs each."""
        return cls.quick(dtype=dtype, dimensions=tuple(2**power for power in range(6, 13)), replicates=200)

    def grid(self) -> Float[Array, " points"]:
        """The dimensions."""
        return self.dimensions

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Zero."""
        return {"mean_modulus": Curve(grid, self.limit + 0 * grid)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Pairs of vectors in the largest dimension; a smaller one takes their first entries, masked."""
        shape = (2, self.batch, self.largest)
        first, second = jax.random.normal(key, (math.prod(shape),), self.dtype).reshape(shape)
        inside = (jnp.arange(self.largest, dtype=self.dtype)[None, :] < grid[:, None]).astype(self.dtype)
        products, squares, others = (
            jnp.matmul(entries, inside.T, precision="highest") for entries in (first * second, first**2, second**2)
        )
        return {"mean_modulus": Curve(grid, jnp.mean(jnp.abs(products) / jnp.sqrt(squares * others), axis=0))}

    def counterfeit(self) -> "TypicalCosine":
        """A mean modulus of 0.02 that stays."""
        return eqx.tree_at(lambda theory: theory.limit, self, self.limit + 0.02)
