"""The held-out risk of an encoder under population descent scatters about its exact curve."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..solver import encoder_risk_curve

INSTANCE_SEED = 0


class EncoderHeldOutRisk(AbstractTheory):
    """On tasks that training has not seen, the mean loss `‖b − G_s z‖² / K` is `σ²` plus a sum of `(1 − η λ_k)^{2s}`.

    Tasks are `b = G_* z + ξ` with `r < K` Gaussian inputs of covariance `Σ_z`, eigenvalues from 1/4 to 1 in a random
    basis, and noise of variance `σ²`, the floor of the curve. The encoder starts at zero and descends on the
    population objective step by step; at each point of the grid it is tried on fresh tasks. The risk has no factor
    1/2. A sampled risk is not sharp: `n` tasks have a relative standard deviation of `(2 / (n K))^{1/2}` near the
    floor.

    The counterfeit has a learning rate that is 10 % too small.

    Attributes
    ----------
    initial, target, covariance
        `G_0`, `G_*`, `Σ_z`.
    root
        A factor `R` of `Σ_z = R Rᵀ`, with which the experiment draws.
    at
        Steps at which the encoder is tried.
    """

    initial: Float[Array, "size inputs"]
    target: Float[Array, "size inputs"]
    covariance: Float[Array, "inputs inputs"]
    root: Float[Array, "inputs inputs"]
    noise_variance: Float[Array, ""]
    learning_rate: Float[Array, ""]
    at: tuple[int, ...] = eqx.field(static=True)
    held_out: int = eqx.field(static=True)
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
        "The mean loss of an encoder on fresh tasks after s steps of population descent (a mean over observations, "
        "without 1/2) is the noise variance plus the mean over observations of |D_k|^2 lambda_k (1 - eta "
        "lambda_k)^(2s), summed over the eigenvectors of the covariance."
    )
    observables: ClassVar[tuple[str, ...]] = ("risk",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "held-out tasks have the law of the population and are independent of training",
        "descent on the population objective",
    )
    breaks_when: ClassVar[str] = "Held-out tasks have another covariance, or training saw them."
    effect: ClassVar[float] = 0.03

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 32,
        inputs: int = 8,
        at: tuple[int, ...] = (0, 10, 20, 50, 100, 200, 400, 800),
        held_out: int = 256,
        learning_rate: float = 0.1,
        noise_variance: float = 4e-4,
        replicates: int = 40,
        instance_seed: int = INSTANCE_SEED,
    ) -> "EncoderHeldOutRisk":
        """32 observations of eight inputs, tried on 40 times 256 tasks at each of eight steps up to 800."""
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
            at=at,
            held_out=held_out,
            replicates=replicates,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, held_out: int = 4096, **options) -> "EncoderHeldOutRisk":
        """40 times 4096 held-out tasks; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, held_out=held_out, **options)

    def grid(self) -> Float[Array, " points"]:
        """Steps at which the encoder is tried."""
        return jnp.asarray(self.at, self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The exact curve."""
        curve = encoder_risk_curve(
            self.initial,
            self.target,
            self.covariance,
            noise_variance=self.noise_variance,
            learning_rate=self.learning_rate,
            steps=grid.astype(int),
        )
        return {"risk": Curve(grid, curve.risk)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Descent, and the losses of fresh tasks at each point."""
        size, inputs = self.target.shape

        def product(left, right):
            return jnp.matmul(left, right, precision="highest")

        def step(encoder, _):
            gradient = product(encoder - self.target, product(self.root, self.root.T))
            return encoder - self.learning_rate * gradient, encoder

        _, encoders = jax.lax.scan(step, self.initial, length=max(self.at) + 1)

        def risk(number, encoder):
            # Drawn flat: several axes under vmap take three times as long to compile.
            count = self.held_out
            flat = jax.random.normal(jax.random.fold_in(key, number), (count * (inputs + size),), self.dtype)
            latent = product(flat[: count * inputs].reshape(count, inputs), self.root.T)
            noise = jnp.sqrt(self.noise_variance) * flat[count * inputs :].reshape(count, size)
            return jnp.mean((product(latent, self.target.T) + noise - product(latent, encoder.T)) ** 2)

        tried = encoders.at[grid.astype(int)].get(mode="fill", fill_value=jnp.nan)
        return {"risk": Curve(grid, jax.vmap(risk)(jnp.arange(len(self.at), dtype=jnp.uint32), tried))}

    def counterfeit(self) -> "EncoderHeldOutRisk":
        """The learning rate is 10 % too small."""
        return eqx.tree_at(lambda theory: theory.learning_rate, self, 0.9 * self.learning_rate)
