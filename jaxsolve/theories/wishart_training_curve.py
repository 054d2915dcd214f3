"""The closed scalar law of isotropic Wishart tasks predicts the whole training curve, up to one over the size."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..curves import commuting_descent, commuting_loss, marchenko_pastur
from ..evidence import AbstractTheory, Curve, Kind, LimitRule
from ..solver import population_gradient, wishart_operators


class WishartTrainingCurve(AbstractTheory):
    """From `P_0 = p_0 I`, `p ← p + η_1 L ∫ h (1 − p h)^{2L−1} ρ(h) dh` gives the loss curve at all steps, as `K → ∞`.

    `ρ` is the Marchenko–Pastur law at `K/n = 1/4`, and the learning rate of the matrix is `η = K η_1`. All entries of
    `P` are trained in the measurement, each step on new tasks; their loss before the step is recorded. The curve is
    followed from the start until the loss is near its minimum, not only where it is linear. Half the mean square error
    over unknowns, exact over first errors with `S = I`.

    The counterfeit has a learning rate that is 25 % too large.

    Attributes
    ----------
    rate
        `η_1`.
    rate_factor
        1; what the prediction multiplies `η_1` by.
    """

    initial: Scalar
    rate: Scalar
    rate_factor: Scalar
    sizes: tuple[int, ...] = eqx.field(static=True)
    freedom_ratio: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    tasks: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=-1.0, band=0.25)
    source: ClassVar[str] = """@misc{solver-training,
  title = {Training dynamics of a transformer that learns a preconditioner},
  note = {source document 000, on a closed law for the joint state}
}"""
    statement: ClassVar[str] = (
        "For isotropic Wishart tasks of K unknowns and a start at a multiple of the identity, the curve of the "
        "population loss (half the mean square error over unknowns) under descent on all entries of the preconditioner "
        "differs from that of one scalar recursion by an error, over all steps, that falls as 1/K."
    )
    observables: ClassVar[tuple[str, ...]] = ("loss",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "Gaussian vectors behind the operators, isotropic",
        "new tasks at every step, enough of them",
        "a start at a multiple of the identity",
    )
    breaks_when: ClassVar[str] = (
        "Training goes on long past the minimum on few tasks per step: where the law has a saddle, noise leaves it."
    )
    effect: ClassVar[float] = 0.4

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        sizes: tuple[int, ...] = (4, 8, 16),
        freedom_ratio: int = 4,
        depth: int = 4,
        steps: int = 20,
        rate: float = 0.15,
        tasks: int = 128,
        replicates: int = 10,
    ) -> "WishartTrainingCurve":
        """Sizes 4, 8 and 16, 20 steps of 128 tasks, ten runs."""
        return cls(
            initial=jnp.asarray(0.3, dtype),
            rate=jnp.asarray(rate, dtype),
            rate_factor=jnp.asarray(1.0, dtype),
            sizes=sizes,
            freedom_ratio=freedom_ratio,
            depth=depth,
            steps=steps,
            tasks=tasks,
            replicates=replicates,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        sizes: tuple[int, ...] = (8, 16, 32),
        steps: int = 40,
        tasks: int = 256,
        **options,
    ) -> "WishartTrainingCurve":
        """Sizes 8, 16 and 32, 40 steps of 256 tasks."""
        return cls.quick(dtype=dtype, sizes=sizes, steps=steps, tasks=tasks, **options)

    def grid(self) -> Float[Array, " points"]:
        """The sizes `K`."""
        return jnp.asarray(self.sizes, self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The scalar recursion, the same at every size."""
        nodes, weights = marchenko_pastur(1 / self.freedom_ratio, dtype=self.dtype)
        law = {"depth": self.depth, "weights": weights}
        one, rate = jnp.ones(1, self.dtype), self.rate_factor * self.rate
        path = commuting_descent(self.initial[None], nodes[:, None], one, learning_rate=rate, steps=self.steps, **law)
        curve = jax.vmap(lambda gains: commuting_loss(gains, nodes[:, None], one, **law))(path)
        return {"loss": Curve(grid, jnp.tile(curve[None], (len(grid), 1)))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Descent on all entries, each step on new tasks."""
        keys = jax.random.split(key, len(self.sizes))
        return {"loss": Curve(grid, jnp.stack([self._trained(*run) for run in zip(self.sizes, keys, strict=True)]))}

    def counterfeit(self) -> "WishartTrainingCurve":
        """The learning rate is 25 % too large."""
        return dataclasses.replace(self, rate_factor=1.25 * self.rate_factor)

    def _trained(self, size, key):
        freedom = self.freedom_ratio * size
        identity = jnp.eye(size, dtype=self.dtype)

        def step(matrix, key):
            entries = jax.random.normal(key, (self.tasks * size * freedom,), self.dtype)
            operators = wishart_operators(entries.reshape(self.tasks, size, freedom), jnp.ones(size, self.dtype))
            loss, gradient = population_gradient(matrix, operators, identity, depth=self.depth)
            return matrix - self.rate * size * gradient, loss

        return jax.lax.scan(step, self.initial * identity, jax.random.split(key, self.steps + 1))[1]
