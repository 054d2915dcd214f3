"""An encoder of prompts trains by the law of the linear encoder, with the exact second moment of its statistic."""

import itertools
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..solver import encoder_trajectory, in_context_encoder, in_context_risk, prompt_moment

INSTANCE_SEED = 1


class InContextEncoder(AbstractTheory):
    """`Γ_s − Γ_* = (Γ_0 − Γ_*) (I − η S_m)^s` for linear attention that reads a task from `m` noisy pairs.

    A task `b ~ N(0, C)` of low rank is shown by `x_j ~ N(0, I_K)` and `y_j = b · x_j + τ ε_j`; the encoder `Γ` reads
    `s = 1/m Σ_j y_j x_j`, and descends on `E ‖b − Γ s‖² / 2`. The prediction takes `S_m` from its formula. The
    measurement forms no moment of fourth order by hand: it integrates over tasks and pairs by Gauss–Hermite
    quadrature, which is exact for them, and differentiates the objective automatically. The risk is
    `E ‖b − Γ_s s‖²`, a sum over the entries of the task.

    The counterfeit forgets that a pair is not independent of itself: `S_m` without `C / m`.

    Attributes
    ----------
    initial
        `Γ_0`.
    factor
        `F` with `C = F Fᵀ`.
    second_moment
        `S_m` of the prediction.
    task_nodes, task_weights, input_nodes, input_weights
        Quadrature for standard normal vectors of `r` and of `K` entries.
    """

    initial: Float[Array, "size size"]
    factor: Float[Array, "size rank"]
    second_moment: Float[Array, "size size"]
    noise_variance: Float[Array, ""]
    learning_rate: Float[Array, ""]
    task_nodes: Float[Array, "_ rank"]
    task_weights: Float[Array, " _"]
    input_nodes: Float[Array, "_ size"]
    input_weights: Float[Array, " _"]
    prompt_size: int = eqx.field(static=True)
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
        "Merged linear attention that reads a task from m pairs trains by a matrix power with S_m = (1 + 1/m) C + "
        "((tr C + tau^2)/m) I, on half the mean square of the task's error (a sum over entries), relative to the "
        "largest on the curve."
    )
    observables: ClassVar[tuple[str, ...]] = ("encoder", "risk")
    assumptions: ClassVar[tuple[str, ...]] = (
        "inputs of the prompt are standard normal, tasks and noise are Gaussian and independent",
        "one matrix holds the product of key and query",
    )
    breaks_when: ClassVar[str] = "Key and query weights are trained apart, or the inputs are not white."
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 4,
        rank: int = 2,
        prompt_size: int = 6,
        steps: int = 100,
        learning_rate: float = 0.3,
        noise_variance: float = 0.1,
        instance_seed: int = INSTANCE_SEED,
    ) -> "InContextEncoder":
        """Tasks of four entries and rank two, prompts of six pairs, 100 steps."""
        random = np.random.default_rng(instance_seed)
        rotation = np.linalg.qr(random.standard_normal((size, size)))[0]
        factor = jnp.asarray(rotation[:, :rank] * np.sqrt(np.linspace(1, 0.4, rank)), dtype)
        noise = jnp.asarray(noise_variance, dtype)
        covariance = jnp.matmul(factor, factor.T, precision="highest")
        task_nodes, task_weights = _gauss_hermite(rank)
        input_nodes, input_weights = _gauss_hermite(size)
        return cls(
            initial=jnp.asarray(random.standard_normal((size, size)), dtype),
            factor=factor,
            second_moment=prompt_moment(covariance, prompt_size=prompt_size, noise_variance=noise),
            noise_variance=noise,
            learning_rate=jnp.asarray(learning_rate, dtype),
            task_nodes=jnp.asarray(task_nodes, dtype),
            task_weights=jnp.asarray(task_weights, dtype),
            input_nodes=jnp.asarray(input_nodes, dtype),
            input_weights=jnp.asarray(input_weights, dtype),
            prompt_size=prompt_size,
            steps=steps,
        )

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, size: int = 7, rank: int = 3, **options
    ) -> "InContextEncoder":
        """Tasks of seven entries and rank three; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, size=size, rank=rank, **options)

    def grid(self) -> Float[Array, " points"]:
        """The step of gradient descent."""
        return jnp.arange(self.steps + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The law of the linear encoder, and the risk in closed form."""
        covariance = jnp.matmul(self.factor, self.factor.T, precision="highest")
        prompt = {"prompt_size": self.prompt_size, "noise_variance": self.noise_variance}
        encoders = encoder_trajectory(
            self.initial,
            in_context_encoder(covariance, **prompt),
            self.second_moment,
            learning_rate=self.learning_rate,
            steps=grid.astype(int),
        )
        risks = jax.vmap(lambda encoder: in_context_risk(encoder, covariance, **prompt))(encoders)
        return {"encoder": Curve(grid, encoders), "risk": Curve(grid, risks)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Descent on the objective, integrated over tasks and pairs."""
        del key
        product = partial(jnp.einsum, precision="highest")
        tasks = product("ar,kr->ak", self.task_nodes, self.factor)
        labels = product("ak,pk->ap", tasks, self.input_nodes)
        inputs, share = self.input_nodes, 1 / self.prompt_size

        def risk(encoder):
            """Given a task the statistic is a mean of independent pairs: its mean square is variance plus mean."""
            seen = product("pj,ij->pi", inputs, encoder)
            mean = product("p,ap,pi->ai", self.input_weights, labels, seen)
            square = product("p,ap,pi->a", self.input_weights, labels**2 + self.noise_variance, seen**2)
            spread = square - jnp.sum(mean**2, axis=1)
            return product("a,a->", self.task_weights, jnp.sum((tasks - mean) ** 2, axis=1) + share * spread)

        def step(encoder, _):
            value, slope = jax.value_and_grad(risk)(encoder)
            return encoder - self.learning_rate * slope / 2, (encoder, value)

        _, (encoders, risks) = jax.lax.scan(step, self.initial, length=self.steps + 1)
        return {"encoder": Curve(grid, encoders), "risk": Curve(grid, risks)}

    def counterfeit(self) -> "InContextEncoder":
        """The fourth moment of a pair as if its two factors were independent."""
        covariance = jnp.matmul(self.factor, self.factor.T, precision="highest")
        without = self.second_moment - covariance / self.prompt_size
        return eqx.tree_at(lambda theory: theory.second_moment, self, without)


def _gauss_hermite(size):
    """Nodes and weights for a standard normal vector, exact up to degree five in each entry."""
    nodes, weights = np.array([-np.sqrt(3), 0, np.sqrt(3)]), np.array([1, 4, 1]) / 6
    every = list(itertools.product(range(3), repeat=size))
    return nodes[every], weights[every].prod(axis=1)
