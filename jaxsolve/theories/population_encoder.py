"""Under population gradient descent the error of a linear encoder is its start times a matrix power."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..solver import encoder_risk_curve, encoder_trajectory

INSTANCE_SEED = 0


class PopulationEncoder(AbstractTheory):
    """`G_s − G_* = (G_0 − G_*) (I − η Σ_z)^s` for descent on `E ‖b − G z‖² / 2`, and the risk that follows.

    Tasks are `b = G_* z + ξ` with `r` Gaussian inputs `z` of covariance `Σ_z` and `K` observations, `r < K`, and noise
    `ξ ~ N(0, σ² I)`. The covariance has eigenvalues from 1/4 to 1 in a random basis, `G_*` entries `N(0, 1/r)`, and
    training starts at zero. The risk is `E ‖b − G z‖² / K`, without 1/2.

    The prediction diagonalises `Σ_z` once and takes powers of numbers. The measurement knows the moments
    `E[b zᵀ]` and `E[z zᵀ]` alone, and runs descent by automatic differentiation of the objective.

    The counterfeit is the gradient flow `exp(−η s Σ_z)`.

    Attributes
    ----------
    initial, target
        `G_0` and `G_*`.
    covariance
        `Σ_z` of the prediction.
    input_moment, cross_moment
        `E[z zᵀ]` and `E[b zᵀ]`, which the measurement descends on.
    """

    initial: Float[Array, "size inputs"]
    target: Float[Array, "size inputs"]
    covariance: Float[Array, "inputs inputs"]
    input_moment: Float[Array, "inputs inputs"]
    cross_moment: Float[Array, "size inputs"]
    noise_variance: Float[Array, ""]
    learning_rate: Float[Array, ""]
    steps: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=256.0, relative_to="curve")
    source: ClassVar[str] = """@article{takanami2025learning,
  author = {Takanami, Kaito and Takahashi, Takashi and Kabashima, Yoshiyuki},
  title = {Learning Linear Regression with Low-Rank Tasks In-Context},
  year = {2025},
  eprint = {2510.04548},
  archivePrefix = {arXiv},
}"""
    statement: ClassVar[str] = (
        "After s steps of population gradient descent on half the mean square of b - Gz (a sum over observations), the "
        "error matrix of the encoder is its first value times (I - eta Sigma_z)^s, and the risk (a mean over "
        "observations, without 1/2) is the noise variance plus a sum of (1 - eta lambda_k)^(2s), relative to the "
        "largest on the curve."
    )
    observables: ClassVar[tuple[str, ...]] = ("error", "risk")
    assumptions: ClassVar[tuple[str, ...]] = (
        "the noise is independent of the inputs",
        "the encoder is one matrix, trained by plain descent on the population objective",
    )
    breaks_when: ClassVar[str] = "The encoder is a product of trained matrices, or batches are finite."
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 12,
        inputs: int = 4,
        steps: int = 200,
        learning_rate: float = 0.1,
        noise_variance: float = 4e-4,
        instance_seed: int = INSTANCE_SEED,
    ) -> "PopulationEncoder":
        """Twelve observations of four inputs, 200 steps."""
        random = np.random.default_rng(instance_seed)
        rotation = np.linalg.qr(random.standard_normal((inputs, inputs)))[0]
        covariance = rotation @ np.diag(np.linspace(0.25, 1, inputs)) @ rotation.T
        target = random.standard_normal((size, inputs)) / np.sqrt(inputs)
        return cls(
            initial=jnp.asarray(np.zeros_like(target), dtype),
            target=jnp.asarray(target, dtype),
            covariance=jnp.asarray(covariance, dtype),
            input_moment=jnp.asarray(covariance, dtype),
            cross_moment=jnp.asarray(target @ covariance, dtype),
            noise_variance=jnp.asarray(noise_variance, dtype),
            learning_rate=jnp.asarray(learning_rate, dtype),
            steps=steps,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 32,
        inputs: int = 8,
        steps: int = 400,
        **options,
    ) -> "PopulationEncoder":
        """32 observations of eight inputs, 400 steps; the error matrix is still above rounding there."""
        return cls.quick(dtype=dtype, size=size, inputs=inputs, steps=steps, **options)

    def grid(self) -> Float[Array, " points"]:
        """The step of gradient descent."""
        return jnp.arange(self.steps + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Powers of the eigenvalues."""
        given = {"learning_rate": self.learning_rate, "steps": grid.astype(int)}
        arrays = (self.initial, self.target, self.covariance)
        errors = encoder_trajectory(*arrays, **given) - self.target[None]
        curve = encoder_risk_curve(*arrays, noise_variance=self.noise_variance, **given)
        return {"error": Curve(grid, errors), "risk": Curve(grid, curve.risk)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Descent as it is written, and the risk from the moments."""
        del key
        size = self.target.shape[0]
        energy = jnp.sum(self.target * self.cross_moment) + size * self.noise_variance

        def objective(encoder):
            second = jnp.matmul(encoder, self.input_moment, precision="highest")
            return (energy - 2 * jnp.sum(encoder * self.cross_moment) + jnp.sum(second * encoder)) / 2

        def step(encoder, _):
            # The sum of squares is taken of the error: as a difference of energies the floor would be rounding.
            error = encoder - self.target
            excess = jnp.sum(jnp.matmul(error, self.input_moment, precision="highest") * error)
            following = encoder - self.learning_rate * jax.grad(objective)(encoder)
            return following, (error, self.noise_variance + excess / size)

        _, (errors, risks) = jax.lax.scan(step, self.initial, length=self.steps + 1)
        return {"error": Curve(grid, errors), "risk": Curve(grid, risks)}

    def counterfeit(self) -> "PopulationEncoder":
        """The flow in place of the steps: `η Σ_z` becomes `I − exp(−η Σ_z)`."""
        decay = jax.scipy.linalg.expm(-self.learning_rate * self.covariance)
        flow = (jnp.eye(len(decay), dtype=self.dtype) - decay) / self.learning_rate
        return eqx.tree_at(lambda theory: theory.covariance, self, (flow + flow.T) / 2)
