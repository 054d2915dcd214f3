"""Parameters dilute the cost of a deleted subspace; a deleted proportion stays."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, LimitRule


class RandomSubspaceScaling(AbstractTheory):
    """With `k` fixed the mean deleted share falls as `1/P`; with `k = P/2` it stays, and its variance falls as `1/P`.

    Both are limits zero: of the mean share, and of the mean square distance of the share from 1/2. There is no number
    of parameters from which on the cost would be nothing. The counterfeit has a mean share that stays at 0.01.

    Attributes
    ----------
    limit
        Zero.
    sizes
        `P`, rising and even.
    fixed
        `k` of the first observable.
    batch
        Draws in one replicate.
    """

    parameters: Float[Array, " points"]
    limit: Float[Array, ""]
    sizes: tuple[int, ...] = eqx.field(static=True)
    replicates: int = eqx.field(static=True)
    fixed: int = eqx.field(static=True, default=8)
    batch: int = eqx.field(static=True, default=50)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=-1.0, band=0.1)
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result D}
}"""
    statement: ClassVar[str] = (
        "The mean share of a gradient in a random subspace of fixed dimension vanishes as 1/P over the number of "
        "parameters; with half of the dimensions deleted it tends to one half, with a mean square error of order 1/P."
    )
    observables: ClassVar[tuple[str, ...]] = ("fixed_dimension", "fixed_proportion")
    assumptions: ClassVar[tuple[str, ...]] = ("the subspace is uniform and independent of the gradient",)
    breaks_when: ClassVar[str] = "The subspace follows the gradient."
    effect: ClassVar[float] = 0.1

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        sizes: tuple[int, ...] = (32, 128, 512, 2048),
        replicates: int = 100,
    ) -> "RandomSubspaceScaling":
        """Five thousand draws, 32 to 2048 parameters."""
        return cls(parameters=jnp.asarray(sizes, dtype), limit=jnp.zeros((), dtype), sizes=sizes, replicates=replicates)

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "RandomSubspaceScaling":
        """Ten thousand draws, 32 to 8192 parameters."""
        return cls.quick(dtype=dtype, sizes=tuple(2**power for power in range(5, 14)), replicates=200)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of parameters."""
        return self.parameters

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Zero."""
        return {name: Curve(grid, self.limit + 0 * grid) for name in self.observables}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """A uniform gradient and a fixed subspace, which is the same by rotational invariance."""
        largest = self.sizes[-1]
        squares = jax.random.normal(key, (self.batch * largest,), self.dtype).reshape(self.batch, largest) ** 2
        fixed = [jnp.sum(squares[:, : self.fixed], axis=1) / jnp.sum(squares[:, :size], axis=1) for size in self.sizes]
        half = [jnp.sum(squares[:, : size // 2], axis=1) / jnp.sum(squares[:, :size], axis=1) for size in self.sizes]
        return {
            "fixed_dimension": Curve(grid, jnp.mean(jnp.stack(fixed), axis=1)),
            "fixed_proportion": Curve(grid, jnp.mean((jnp.stack(half) - 0.5) ** 2, axis=1)),
        }

    def counterfeit(self) -> "RandomSubspaceScaling":
        """A share of 0.01 that stays."""
        return eqx.tree_at(lambda theory: theory.limit, self, self.limit + 0.01)
