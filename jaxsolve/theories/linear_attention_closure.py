"""Linear attention on spectral tokens descends towards one closed equation per mode."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..curves import commuting_gradient, integrate
from ..evidence import AbstractTheory, Curve, Kind, LimitRule
from ..solver import population_loss

INSTANCE_SEED = 56


class LinearAttentionClosure(AbstractTheory):
    """`dp/dt = −√(c² + 4 p²) ∂𝓛/∂p` per mode, with `p = a b` and `c = a² − b²` conserved.

    Linear attention has `P = X W_Q W_Kᵀ Xᵀ`. Its tokens are one-hot in the common eigenvectors of the tasks, and
    queries and keys start diagonal there, `W_Q = diag(a)` and `W_K = diag(b)`. They stay diagonal, and `a² − b²` does
    not change along gradient flow. So `p` obeys an equation of its own: as for a free matrix, with a rate that depends
    on `p`. Where `c = 0` the point `p = 0` is a saddle, and each curve is a sigmoid.

    The measurement trains all entries of both matrices by gradient descent. It differs from the flow by the learning
    rate to first order, and so does `a² − b²` from its start; that is the limit tested, at fixed time `t = η s`.

    The counterfeit has a conserved difference that is 10 % too small.

    Attributes
    ----------
    queries, keys
        `a` and `b` at the start.
    learning_rates
        `η`.
    imbalance_factor
        1; what the prediction multiplies `c` by.
    """

    eigenvectors: Float[Array, "size size"]
    eigenvalues: Float[Array, "tasks size"]
    queries: Float[Array, " size"]
    keys: Float[Array, " size"]
    learning_rates: Float[Array, " points"]
    time: Scalar
    imbalance_factor: Scalar
    depth: int = eqx.field(static=True)
    steps: tuple[int, ...] = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=1.0, band=0.1)
    source: ClassVar[str] = """@article{saxe2019mathematical,
  author = {Saxe, Andrew M. and McClelland, James L. and Ganguli, Surya},
  title = {A Mathematical Theory of Semantic Development in Deep Neural Networks},
  journal = {Proceedings of the National Academy of Sciences},
  volume = {116},
  number = {23},
  year = {2019},
}"""
    statement: ClassVar[str] = (
        "With linear attention on one-hot tokens of the common eigenvectors, gradient descent on queries and keys for "
        "the population loss (half the mean square over unknowns) tends, in proportion to the learning rate at fixed "
        "time, to one scalar equation per mode and to a conserved difference of squares."
    )
    observables: ClassVar[tuple[str, ...]] = ("gains", "imbalance")
    assumptions: ClassVar[tuple[str, ...]] = (
        "tasks with common eigenvectors, which the tokens know",
        "queries and keys that start diagonal",
    )
    breaks_when: ClassVar[str] = "Tokens are generic: the metric of the parametrisation then has no symmetry."
    effect: ClassVar[float] = 0.2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 3,
        tasks: int = 6,
        depth: int = 3,
        time: float = 4.0,
        steps: tuple[int, ...] = (160, 80, 40),
        instance_seed: int = INSTANCE_SEED,
    ) -> "LinearAttentionClosure":
        """Six tasks of three unknowns, learning rates from 1/40 to 1/10."""
        random = np.random.default_rng(instance_seed)
        rotation, _ = np.linalg.qr(random.standard_normal((size, size)))
        eigenvalues = random.uniform(0.3, 1.2, (tasks, size))
        queries, keys = random.uniform(0.3, 0.9, size), random.uniform(0.05, 0.2, size)
        return cls(
            eigenvectors=jnp.asarray(rotation, dtype),
            eigenvalues=jnp.asarray(eigenvalues, dtype),
            queries=jnp.asarray(queries, dtype),
            keys=jnp.asarray(keys, dtype),
            learning_rates=jnp.asarray(time / np.array(steps), dtype),
            time=jnp.asarray(time, dtype),
            imbalance_factor=jnp.asarray(1.0, dtype),
            depth=depth,
            steps=steps,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, size: int = 8, tasks: int = 64, **options):
        """64 tasks of eight unknowns; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, size=size, tasks=tasks, **options)

    def grid(self) -> Float[Array, " points"]:
        """The learning rates."""
        return self.learning_rates

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The closed flow at the last time, the same at every learning rate."""
        imbalance = self.imbalance_factor * (self.queries**2 - self.keys**2)
        field = eqx.Partial(_rate, imbalance, self.eigenvalues, self.depth)
        gains = integrate(field, self.queries * self.keys, times=self.time[None]).states[-1]
        return {
            "gains": Curve(grid, jnp.tile(gains[None], (len(grid), 1))),
            "imbalance": Curve(grid, jnp.tile(imbalance[None], (len(grid), 1))),
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Gradient descent on all entries of both matrices, at each learning rate."""
        del key
        vectors, size = self.eigenvectors, self.queries.size
        operators = jnp.einsum("ik,tk,jk->tij", vectors, self.eigenvalues, vectors, precision="highest")

        def loss(weights):
            inner = jnp.matmul(weights[0], weights[1].T, precision="highest")
            matrix = jnp.einsum("ik,kl,jl->ij", vectors, inner, vectors, precision="highest")
            return population_loss(matrix, operators, jnp.eye(size, dtype=self.dtype), depth=self.depth)

        def trained(run):
            learning_rate, steps = run

            def step(_, weights):
                return weights - learning_rate * jax.grad(loss)(weights)

            start = jnp.stack([jnp.diag(self.queries), jnp.diag(self.keys)])
            queries, keys = jax.lax.fori_loop(0, steps, step, start)
            gains = jnp.diagonal(jnp.matmul(queries, keys.T, precision="highest"))
            return gains, jnp.diagonal(queries) ** 2 - jnp.diagonal(keys) ** 2

        gains, imbalances = jax.lax.map(trained, (grid, jnp.asarray(self.steps)))
        return {"gains": Curve(grid, gains), "imbalance": Curve(grid, imbalances)}

    def counterfeit(self) -> "LinearAttentionClosure":
        """The conserved difference is 10 % too small."""
        return dataclasses.replace(self, imbalance_factor=0.9 * self.imbalance_factor)


def _rate(imbalance, eigenvalues, depth, time, gains):
    del time
    slope = commuting_gradient(gains, eigenvalues, jnp.ones_like(gains), depth=depth)
    return -jnp.sqrt(imbalance**2 + 4 * gains**2) * slope
