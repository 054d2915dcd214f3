"""Two sample sizes, two power laws: examples in a prompt and tasks of the pretraining."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, LimitRule


class ScalingAxes(AbstractTheory):
    """An encoder of prompts errs by `R(m, N) ≈ R_*(m) (1 + κ K / N)`, with `R_*(m) ≈ [(r + 1) tr C + r τ²] / m`.

    Tasks `b ~ N(0, C)` have `K` entries and rank `r`; a prompt of `m` pairs `x ~ N(0, I)`, `y = b · x + τ ε` is read as
    `Γ s` with `s = 1/m Σ y x`. Errors are `E ‖b − Γ s‖²`, sums over entries. The grid are factors by which a sample
    size is raised above its first value; each axis leaves the other alone.

    - ``prompt_size``: the error of the best encoder on drawn tasks and prompts falls as `1/m` to zero: the prompt
      identifies the task.
    - ``task_count``: with `m` fixed, the encoder regressed on `N` drawn tasks and prompts tends to the best one: its
      risk falls as `1/N` to `R_*(m)`, and no further. The factor `κ` is not that of Gaussian regression, 1, but 1.4 to
      1.6 here, since `s` is a product of Gaussian variables.
    - ``exposed_directions``: the same for a model that sees and answers in all but one of the directions of the tasks.
      Pretraining on more tasks takes it as `1/N` to the risk of what it exposes plus the whole energy of the direction
      that it does not.

    The counterfeit believes that the noise of the labels remains when all is learned: as a floor of the error under
    long prompts, and on top of the other two limits.

    Attributes
    ----------
    variances
        `c_1, …, c_r`, the eigenvalues of `C` that are not zero; its eigenvectors are the first coordinates.
    label_noise
        `τ²`.
    floor
        What the prediction adds to its limits, in units of `τ²`.
    """

    variances: Float[Array, " rank"]
    label_noise: Float[Array, ""]
    floor: Float[Array, ""]
    size: int = eqx.field(static=True)
    factors: tuple[int, ...] = eqx.field(static=True)
    first_prompt: int = eqx.field(static=True)
    first_count: int = eqx.field(static=True)
    fixed_prompt: int = eqx.field(static=True)
    trials: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=96)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=-1.0, band=0.15)
    source: ClassVar[str] = """@article{takanami2025learning,
  author = {Takanami, Kaito and Takahashi, Takashi and Kabashima, Yoshiyuki},
  title = {Learning Linear Regression with Low-Rank Tasks In-Context},
  year = {2025},
  eprint = {2510.04548},
  archivePrefix = {arXiv},
}"""
    statement: ClassVar[str] = (
        "The error of an encoder of prompts (a sum over entries of the task) falls as 1/m with the examples in a "
        "prompt; with the prompt fixed, its excess over the best risk falls as 1/N with the pretraining tasks, and the "
        "energy of a direction that the model does not expose remains."
    )
    observables: ClassVar[tuple[str, ...]] = ("prompt_size", "task_count", "exposed_directions")
    assumptions: ClassVar[tuple[str, ...]] = (
        "inputs are standard normal, tasks and label noise Gaussian",
        "several times more pretraining tasks than entries of a task",
    )
    breaks_when: ClassVar[str] = "There are about as many tasks as entries, where the regression is singular."
    effect: ClassVar[float] = 0.15

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 8,
        rank: int = 3,
        factors: tuple[int, ...] = (1, 3, 9),
        first_prompt: int = 64,
        first_count: int = 96,
        fixed_prompt: int = 16,
        trials: int = 8,
        label_noise: float = 0.05,
        replicates: int = 96,
    ) -> "ScalingAxes":
        """Tasks of eight entries, prompts of 64 to 576 pairs, 96 to 864 pretraining tasks.

        Parameters
        ----------
        dtype
            Of all arrays.
        size, rank
            `K` and `r`.
        factors
            The grid.
        first_prompt, first_count
            Smallest `m` and `N`.
        fixed_prompt
            `m` on the axes of `N`.
        trials
            Tasks on which a replicate tries the best encoder at each `m`.
        label_noise
            `τ²`.
        replicates
            Number of independent pretrainings, and of sets of trials.
        """
        return cls(
            variances=jnp.linspace(1, 0.4, rank, dtype=dtype),
            label_noise=jnp.asarray(label_noise, dtype),
            floor=jnp.zeros((), dtype),
            size=size,
            factors=factors,
            first_prompt=first_prompt,
            first_count=first_count,
            fixed_prompt=fixed_prompt,
            trials=trials,
            replicates=replicates,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 24,
        rank: int = 4,
        first_prompt: int = 128,
        first_count: int = 256,
        fixed_prompt: int = 32,
        trials: int = 32,
        label_noise: float = 0.01,
        **options,
    ) -> "ScalingAxes":
        """Tasks of 24 entries, prompts of 128 to 1152 pairs, 256 to 2304 tasks; else as ``quick``."""
        sizes = {"size": size, "rank": rank, "first_prompt": first_prompt, "first_count": first_count}
        return cls.quick(
            dtype=dtype, fixed_prompt=fixed_prompt, trials=trials, label_noise=label_noise, **sizes, **options
        )

    def grid(self) -> Float[Array, " points"]:
        """Factors of the sample size."""
        return jnp.asarray(self.factors, self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The limits, from the risk of one direction at a time."""
        total = self.variances.sum() + self.label_noise
        read = self.variances / ((1 + 1 / self.fixed_prompt) * self.variances + total / self.fixed_prompt)
        risks = self.variances * (1 - read)
        limits = {
            "prompt_size": jnp.zeros((), self.dtype),
            "task_count": risks.sum(),
            "exposed_directions": risks[:-1].sum() + self.variances[-1],
        }
        remaining = self.floor * self.label_noise
        return {name: Curve(grid, jnp.full(grid.shape, limit + remaining)) for name, limit in limits.items()}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Drawn prompts for the first axis, a pretraining for the two others."""
        task_key, trial_key, prompt_key = jax.random.split(key, 3)
        counts = [factor * self.first_count for factor in self.factors]
        tasks = self._tasks(task_key, max(counts) + self.trials)
        trials, tasks = tasks[: self.trials], tasks[self.trials :]
        covariance = jnp.zeros((self.size, self.size), self.dtype)
        covariance = covariance.at[: len(self.variances), : len(self.variances)].set(jnp.diag(self.variances))
        lengths = [factor * self.first_prompt for factor in self.factors]
        second = self._moment(covariance, self.fixed_prompt)
        inputs, labels = self._pairs(tasks, self.fixed_prompt, prompt_key)
        statistics = jnp.sum(labels[:, :, None] * inputs, axis=1) / self.fixed_prompt
        seen = jnp.ones((2, self.size), self.dtype).at[1, len(self.variances) - 1].set(0)

        def equations(mask, count):
            read, told = mask[None, :] * statistics[:count], mask[None, :] * tasks[:count]
            gram = jnp.matmul(read.T, read, precision="highest") + jnp.diag(1 - mask)
            return gram, jnp.matmul(read.T, told, precision="highest")

        best = [(self._moment(covariance, length), covariance) for length in lengths]
        fitted = [equations(mask, count) for mask in seen for count in counts]
        # One call for all systems: several batched calls at a time can wait for each other for ever on a CPU.
        systems, sides = (jnp.stack(part) for part in zip(*best, *fitted, strict=True))
        encoders = jnp.swapaxes(jnp.linalg.solve(systems, sides), 1, 2)
        spread = jnp.sum(jnp.matmul(encoders, second[None], precision="highest") * encoders, axis=(1, 2))
        risks = jnp.trace(covariance) - 2 * jnp.sum(encoders * covariance[None], axis=(1, 2)) + spread
        errors = self._errors(trials, encoders[: len(lengths)], lengths, trial_key)
        whole, exposed = risks[len(lengths) :].reshape(2, len(counts))
        found = (errors, whole, exposed)
        return {name: Curve(grid, value) for name, value in zip(self.observables, found, strict=True)}

    def counterfeit(self) -> "ScalingAxes":
        """The label noise as a floor."""
        return dataclasses.replace(self, floor=jnp.ones_like(self.floor))

    def _errors(self, tasks, encoders, lengths, key):
        """Mean squared errors of the best encoders on ever longer parts of one long prompt per task."""
        inputs, labels = self._pairs(tasks, max(lengths), key)
        errors = []
        for length, encoder in zip(lengths, encoders, strict=True):
            seen = jnp.sum(labels[:, :length, None] * inputs[:, :length], axis=1) / length
            answers = jnp.einsum("ik,tk->ti", encoder, seen, precision="highest")
            errors.append(jnp.mean(jnp.sum((answers - tasks) ** 2, axis=1)))
        return jnp.stack(errors)

    def _moment(self, covariance, length):
        """`E[s sᵀ]`."""
        isotropic = (jnp.trace(covariance) + self.label_noise) / length
        return (1 + 1 / length) * covariance + isotropic * jnp.eye(self.size, dtype=self.dtype)

    def _pairs(self, tasks, length, key):
        """Inputs and noisy labels of one prompt per task."""
        # Drawn flat: several axes under vmap take three times as long to compile.
        flat = jax.random.normal(key, (len(tasks) * length * (self.size + 1),), self.dtype)
        pairs = flat.reshape(len(tasks), length, self.size + 1)
        inputs, noise = pairs[:, :, : self.size], jnp.sqrt(self.label_noise) * pairs[:, :, self.size]
        return inputs, jnp.sum(inputs * tasks[:, None, :], axis=2) + noise

    def _tasks(self, key, count):
        drawn = jax.random.normal(key, (count * len(self.variances),), self.dtype).reshape(count, -1)
        scaled = jnp.sqrt(self.variances)[None, :] * drawn
        return jnp.pad(scaled, ((0, 0), (0, self.size - len(self.variances))))
