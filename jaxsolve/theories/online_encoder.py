"""The mean risk of online stochastic gradient descent of an encoder, exact at every step."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..solver import encoder_risk_curve, online_encoder_curve

INSTANCE_SEED = 0


class OnlineEncoder(AbstractTheory):
    """The risk of an encoder trained on fresh batches of `B` tasks, averaged over runs: a recursion of second moments.

    Tasks are those of the population encoder: `b = G_* z + ξ`, covariance with eigenvalues from 1/4 to 1 in a random
    basis, entries of `G_*` `N(0, 1/r)`, noise of variance `σ²`, start at zero. A step descends on the batch mean of
    `‖b − G z‖² / 2`. Observed are the risk `E ‖b − G_s z‖² / K` of each run's encoder, the same measured on a few
    held-out tasks, which has the same mean and scatters more, and the first of them divided by the risk of population
    descent at that step. At the end of a long run the last is `1 + η tr(Σ_z) / (2 B)` to first order.

    The counterfeit leaves the noise of the gradient out.

    Attributes
    ----------
    initial, target, covariance
        `G_0`, `G_*`, `Σ_z`.
    root
        A factor `R` of `Σ_z = R Rᵀ`, with which the experiment draws.
    """

    initial: Float[Array, "size inputs"]
    target: Float[Array, "size inputs"]
    covariance: Float[Array, "inputs inputs"]
    root: Float[Array, "inputs inputs"]
    noise_variance: Float[Array, ""]
    learning_rate: Float[Array, ""]
    steps: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    held_out: int = eqx.field(static=True)
    points: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=64)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@article{takanami2025learning,
  author = {Takanami, Kaito and Takahashi, Takashi and Kabashima, Yoshiyuki},
  title = {Learning Linear Regression with Low-Rank Tasks In-Context},
  year = {2025},
  eprint = {2510.04548},
  archivePrefix = {arXiv},
}"""
    statement: ClassVar[str] = (
        "The mean over runs of the risk of an encoder under online descent with batches of B Gaussian tasks (a mean "
        "over observations, without 1/2) follows from a closed recursion of second moments at every step; on held-out "
        "tasks it has the same mean, and over the risk of population descent it ends above 1."
    )
    observables: ClassVar[tuple[str, ...]] = ("risk", "held_out_risk", "ratio")
    assumptions: ClassVar[tuple[str, ...]] = (
        "inputs are Gaussian, and the noise is independent of them",
        "every batch is fresh, and the step is plain descent",
    )
    breaks_when: ClassVar[str] = "Inputs have other fourth moments, or tasks are seen twice."
    effect: ClassVar[float] = 0.03

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 12,
        inputs: int = 4,
        steps: int = 120,
        batch: int = 16,
        held_out: int = 512,
        points: int = 12,
        learning_rate: float = 0.1,
        noise_variance: float = 0.04,
        replicates: int = 64,
        instance_seed: int = INSTANCE_SEED,
    ) -> "OnlineEncoder":
        """Twelve observations of four inputs, 120 steps on batches of 16, 64 runs.

        Parameters
        ----------
        dtype
            Of all arrays.
        size, inputs
            `K` and `r`.
        steps, batch, learning_rate
            Of the descent.
        held_out
            Tasks on which a run is tried at each point.
        points
            Number of points of the grid besides the start.
        noise_variance
            `σ²`.
        replicates
            Runs.
        instance_seed
            Of covariance and target.
        """
        random = np.random.default_rng(instance_seed)
        rotation = np.linalg.qr(random.standard_normal((inputs, inputs)))[0]
        root = rotation * np.sqrt(np.linspace(0.25, 1, inputs))
        target = random.standard_normal((size, inputs)) / np.sqrt(inputs)
        return cls(
            initial=jnp.asarray(np.zeros_like(target), dtype),
            target=jnp.asarray(target, dtype),
            covariance=jnp.asarray(root @ root.T, dtype),
            root=jnp.asarray(root, dtype),
            noise_variance=jnp.asarray(noise_variance, dtype),
            learning_rate=jnp.asarray(learning_rate, dtype),
            steps=steps,
            batch=batch,
            held_out=held_out,
            points=points,
            replicates=replicates,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 32,
        inputs: int = 8,
        steps: int = 800,
        batch: int = 512,
        points: int = 16,
        noise_variance: float = 4e-4,
        replicates: int = 32,
        **options,
    ) -> "OnlineEncoder":
        """32 observations of eight inputs, 800 steps on batches of 512, 32 runs; else as ``quick``."""
        shape = {"size": size, "inputs": inputs, "steps": steps, "batch": batch, "points": points}
        return cls.quick(dtype=dtype, noise_variance=noise_variance, replicates=replicates, **shape, **options)

    def grid(self) -> Float[Array, " points"]:
        """Steps from 0 to the last, equally spaced."""
        return jnp.arange(self.points + 1, dtype=self.dtype) * (self.steps // self.points)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Two eigendecompositions."""
        arrays = (self.initial, self.target, self.covariance)
        given = {
            "noise_variance": self.noise_variance,
            "learning_rate": self.learning_rate,
            "steps": grid.astype(int),
        }
        online = online_encoder_curve(*arrays, batch=self.batch, **given).risk
        population = encoder_risk_curve(*arrays, **given).risk
        return {
            "risk": Curve(grid, online),
            "held_out_risk": Curve(grid, online),
            "ratio": Curve(grid, online / population),
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """One run beside population descent, both step by step."""
        size, inputs = self.target.shape
        every = self.steps // self.points

        def product(left, right):
            return jnp.matmul(left, right, precision="highest")

        def tasks(key, count):
            # Drawn flat: several axes under vmap take three times as long to compile.
            flat = jax.random.normal(key, (count * (inputs + size),), self.dtype)
            latent = product(flat[: count * inputs].reshape(count, inputs), self.root.T)
            noise = jnp.sqrt(self.noise_variance) * flat[count * inputs :].reshape(count, size)
            return latent, product(latent, self.target.T) + noise

        def step(state, number):
            encoder, reference = state
            latent, observed = tasks(jax.random.fold_in(key, number), self.batch)
            gradient = product((product(latent, encoder.T) - observed).T, latent) / self.batch
            exact = product(reference - self.target, product(self.root, self.root.T))
            return (encoder - self.learning_rate * gradient, reference - self.learning_rate * exact), None

        def risk(encoder):
            return self.noise_variance + jnp.sum(product(encoder - self.target, self.root) ** 2) / size

        def block(state, numbers):
            encoder, reference = state
            latent, observed = tasks(jax.random.fold_in(key, self.steps + 1 + numbers[0]), self.held_out)
            held_out = jnp.mean((observed - product(latent, encoder.T)) ** 2)
            own = risk(encoder)
            return jax.lax.scan(step, state, numbers)[0], (own, held_out, own / risk(reference))

        numbers = jnp.arange((self.points + 1) * every, dtype=jnp.uint32).reshape(self.points + 1, every)
        _, found = jax.lax.scan(block, (self.initial, self.initial), numbers)
        return {name: Curve(grid, value) for name, value in zip(self.observables, found, strict=True)}

    def counterfeit(self) -> "OnlineEncoder":
        """Batches so large that the gradient has no noise."""
        return dataclasses.replace(self, batch=1_000_000_000)
