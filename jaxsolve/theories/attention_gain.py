"""The best gains of one layer of linear attention, and what each of them is worth."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule

TASKS = 8
"""Tasks and queries that share one set of covariates."""


def _gaussian_prompts(eigenvalues, examples):
    return eigenvalues * (1 + (1 + jnp.sum(eigenvalues) / eigenvalues) / examples)


def _without_own_share(eigenvalues, examples):
    return eigenvalues * (1 + (jnp.sum(eigenvalues) / eigenvalues) / examples)


class AttentionGain(AbstractTheory):
    """In an eigendirection of the covariates the best gain is `1 / a_d`, `a_d = λ_d (1 + (1 + tr(Λ)/λ_d) / N)`.

    A prompt has `N` examples `y_i = w · x_i` with `x_i ~ N(0, Λ)` and a new `w ~ N(0, I)`. One layer of linear
    attention answers a query `x_q` of the same law with `βᵀ U x_q`, `β = (1/N) Σ_i y_i x_i`. Over matrices `U` that
    act on the span of a set `S` of eigendirections, the mean square error of `w · x_q` is least at
    `U = Σ_{d ∈ S} e_d e_dᵀ / a_d`, and there it is

        tr(Λ) − Σ_{d ∈ S} λ_d / (1 + (1 + tr(Λ)/λ_d) / N).

    These are the losses of the plateaus that attention of low rank passes in training, in the order of falling
    eigenvalues. `a_d` exceeds `λ_d` because `E[β_d²] = λ_d a_d` counts the fluctuation of the sample covariance.

    The measurement fits `U`, all entries between the directions of `S`, by least squares to random prompts, eight tasks
    and queries to each set of covariates. It does so for two sets of prompts and for both together. Twice the joint fit
    minus the mean of the two is the gain, free of the bias of order one over the number of prompts. The loss is the
    mean over new prompts of the product of the errors of the two fits, which are independent, so that the scatter of a
    fit does not add to it.

    The counterfeit leaves out a direction's own share of the fluctuation, `a_d = λ_d (1 + tr(Λ)/(λ_d N))`.

    Attributes
    ----------
    eigenvalues
        `λ_d`, in falling order.
    examples
        `N`, static.
    prompts
        Prompts of one replicate, for each of two fits and for the error, static; a multiple of eight.
    denominators
        The function that gives the `a_d` from the eigenvalues and `N`.
    """

    eigenvalues: Float[Array, " size"]
    examples: int = eqx.field(static=True)
    prompts: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True)
    denominators: Callable = eqx.field(static=True, default=_gaussian_prompts)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@inproceedings{ahn2023transformers,
  author = {Ahn, Kwangjun and Cheng, Xiang and Daneshmand, Hadi and Sra, Suvrit},
  title = {Transformers Learn to Implement Preconditioned Gradient Descent for In-Context Learning},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {36},
  year = {2023},
  eprint = {2306.00297},
  archivePrefix = {arXiv},
}"""
    statement: ClassVar[str] = (
        "The matrix of one linear-attention layer that is best on Gaussian prompts is diagonal in the eigenvectors of "
        "the covariates, with entries 1/a_d on the directions that it may use and zero elsewhere, and its mean square "
        "error, without a factor 1/2, is tr(Lambda) - sum over these of lambda_d^2/a_d."
    )
    observables: ClassVar[tuple[str, ...]] = ("gain", "loss")
    assumptions: ClassVar[tuple[str, ...]] = (
        "Gaussian covariates, the same law for examples and query",
        "isotropic task vectors, labels without noise",
        "prompts of one length",
    )
    breaks_when: ClassVar[str] = "The covariates have heavier or lighter tails, which changes E[beta_d^2]."
    effect: ClassVar[float] = 2e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        eigenvalues: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1),
        examples: int = 31,
        prompts: int = 1536,
        replicates: int = 128,
    ) -> "AttentionGain":
        """Four directions, prompts of 31 examples, 393 216 prompts for the fits."""
        ordered = np.sort(eigenvalues)[::-1]
        return cls(eigenvalues=jnp.asarray(ordered, dtype), examples=examples, prompts=prompts, replicates=replicates)

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, replicates: int = 1024, **options) -> "AttentionGain":
        """Three million prompts for the fits; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, replicates=replicates, **options)

    def grid(self) -> Float[Array, " points"]:
        """The number of directions in use, those of the largest eigenvalues."""
        return jnp.arange(self.eigenvalues.size + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The closed forms."""
        directions = jnp.arange(self.eigenvalues.size, dtype=self.dtype)
        used = (directions[None] < grid[:, None]).astype(self.dtype)
        gains = used / self.denominators(self.eigenvalues, self.examples)[None]
        matrices = gains[:, :, None] * jnp.eye(self.eigenvalues.size, dtype=self.dtype)[None]
        loss = jnp.sum(self.eigenvalues) - jnp.sum(gains * self.eigenvalues[None] ** 2, axis=1)
        return {"gain": Curve(grid, matrices), "loss": Curve(grid, loss)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Least squares on the features `β x_qᵀ` of two sets of prompts; the product of both errors on a third."""
        product, size = partial(jnp.einsum, precision="highest"), self.eigenvalues.size
        shape = (3, self.prompts // TASKS, 2 * TASKS + self.examples, size)
        draws = jax.random.normal(key, (math.prod(shape),), self.dtype).reshape(shape)  # one axis: compiles much faster
        features, targets = jax.lax.map(self._prompts, draws)
        fit_sets = features[:2], targets[:2]
        gram, moments = product("spf,spg->sfg", fit_sets[0], fit_sets[0]), product("spf,sp->sf", *fit_sets)
        gram, moments = (jnp.concatenate([sums, jnp.sum(sums, axis=0)[None]]) for sums in (gram, moments))

        def fitted(gram, moments, count):
            direction = jnp.arange(size, dtype=self.dtype) < count
            used = (direction[:, None] & direction[None, :]).ravel()
            block = jnp.where(used[:, None] & used[None, :], gram, jnp.eye(size**2, dtype=self.dtype))
            return jax.scipy.linalg.solve(block, jnp.where(used, moments, 0), assume_a="pos")

        fits = jax.vmap(jax.vmap(fitted, (0, 0, None)), (None, None, 0))(gram, moments, grid)
        unbiased = 2 * fits[:, 2] - jnp.mean(fits[:, :2], axis=1)
        errors = product("gsf,pf->gsp", fits[:, :2], features[2]) - targets[2][None, None]
        return {
            "gain": Curve(grid, unbiased.reshape(-1, size, size)),
            "loss": Curve(grid, jnp.mean(errors[:, 0] * errors[:, 1], axis=1)),
        }

    def counterfeit(self) -> "AttentionGain":
        """One of the two terms of the fluctuation missing."""
        return dataclasses.replace(self, denominators=_without_own_share)

    def _prompts(
        self, draws: Float[Array, "sets vectors size"]
    ) -> tuple[Float[Array, "prompts features"], Float[Array, " prompts"]]:
        """Features `vec(β x_qᵀ)` and targets `w · x_q`, from standard normal vectors."""
        product, size = partial(jnp.einsum, precision="highest"), self.eigenvalues.size
        tasks, scaled = draws[:, :TASKS], draws[:, TASKS:] * jnp.sqrt(self.eigenvalues)[None, None]
        queries, examples = scaled[:, :TASKS], scaled[:, TASKS:]
        labels = product("pnd,ptd->ptn", examples, tasks)
        means = product("ptn,pnd->ptd", labels, examples) / self.examples
        features = means[..., None] * queries[:, :, None, :]
        return features.reshape(-1, size**2), product("ptd,ptd->pt", queries, tasks).ravel()
