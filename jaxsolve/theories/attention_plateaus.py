"""Linear attention of rank one learns one eigendirection after the other; each head follows a scalar recursion."""

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

INSTANCE_SEED = 25


class AttentionPlateaus(AbstractTheory):
    """Gradient descent from balanced heads along eigenvectors is `s ← s + η λ_d² s² (1 − a_d s³)` in each head.

    Prompts are those of [`jaxsolve.theories.attention_gain`][]: `N` examples `y_i = w · x_i`, covariates with the
    second and fourth moments of `N(0, Λ)`, `w ~ N(0, I)`. The attention has one head of rank one per direction,

        output = Σ_h v_h (β · k_h) (q_h · x_q),    β = (1/N) Σ_i y_i x_i,

    and the loss is half the population mean of `(w · x_q − output)²`. Heads from `v_d = s`, `k_d = q_d = s u_d`
    with the eigenvectors `u_d` of `Λ` remain of this form, and with `a_d = λ_d (1 + (1 + tr(Λ)/λ_d) / N)`

        loss = (1/2) Σ_d (λ_d − 2 λ_d² s_d³ + λ_d² a_d s_d⁶).

    From a small start, a head waits for a time of order `1/(λ_d² s)` and then rises to `s³ = 1/a_d`: twice the loss
    rests on the plateaus `tr(Λ) − Σ_{d ∈ S} λ_d²/a_d`, `S` growing by the largest eigenvalue left.

    The prediction iterates the scalars. The measurement trains all entries of all heads by automatic differentiation
    of the population loss, in coordinates in which `Λ` is not diagonal; it takes the mean over covariates by a
    quadrature on three points per direction, which is exact for moments up to the fifth, and knows no `a_d`.

    The counterfeit leaves out a direction's own share of the fluctuation, `a_d = λ_d (1 + tr(Λ)/(λ_d N))`.

    Attributes
    ----------
    eigenvalues, eigenvectors
        `λ_d` and the columns `u_d`.
    start
        `s`, the same for all heads.
    learning_rate
        `η`.
    examples
        `N`.
    own_share
        What the prediction takes for the 1 in `1 + tr(Λ)/λ_d`.
    """

    eigenvalues: Float[Array, " size"]
    eigenvectors: Float[Array, "size size"]
    start: Float[Array, ""]
    learning_rate: Float[Array, ""]
    examples: Float[Array, ""]
    own_share: Float[Array, ""]
    steps: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=4096.0, relative_to="curve")
    source: ClassVar[str] = """@inproceedings{zhang2025training,
  author = {Zhang, Yedi and Singh, Aaditya K. and Latham, Peter E. and Saxe, Andrew},
  title = {Training Dynamics of In-Context Learning in Linear Attention},
  booktitle = {International Conference on Machine Learning},
  year = {2025},
  eprint = {2501.16265},
  archivePrefix = {arXiv},
}"""
    statement: ClassVar[str] = (
        "Gradient descent on half the population mean square error of linear attention, with one balanced head of rank "
        "one along each eigenvector, is one scalar recursion per head: loss and matrix of the attention agree at every "
        "step, relative to the largest norm on the curve."
    )
    observables: ClassVar[tuple[str, ...]] = ("loss", "gain")
    assumptions: ClassVar[tuple[str, ...]] = (
        "Gaussian covariates up to fourth moments, isotropic task vectors, labels without noise",
        "the heads start balanced and along different eigenvectors",
        "the population loss",
    )
    breaks_when: ClassVar[str] = (
        "Heads start in general directions, where the recursion holds only as they tend to zero."
    )
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        eigenvalues: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1),
        examples: int = 31,
        start: float = 0.05,
        learning_rate: float = 1.0,
        steps: int = 3000,
        instance_seed: int = INSTANCE_SEED,
    ) -> "AttentionPlateaus":
        """Four directions, prompts of 31 examples, 3000 steps."""
        square = np.random.default_rng(instance_seed).standard_normal((len(eigenvalues), len(eigenvalues)))
        return cls(
            eigenvalues=jnp.asarray(eigenvalues, dtype),
            eigenvectors=jnp.asarray(np.linalg.qr(square)[0], dtype),
            start=jnp.asarray(start, dtype),
            learning_rate=jnp.asarray(learning_rate, dtype),
            examples=jnp.asarray(examples, dtype),
            own_share=jnp.asarray(1, dtype),
            steps=steps,
        )

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, start: float = 0.02, steps: int = 8000, **options
    ) -> "AttentionPlateaus":
        """A smaller start and 8000 steps; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, start=start, steps=steps, **options)

    def grid(self) -> Float[Array, " points"]:
        """The step of gradient descent."""
        return jnp.arange(0, self.steps + 1, 10, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The scalar recursions."""
        heads = _scalar_heads(self.eigenvalues, self._denominators(), self.start, self.learning_rate, self.steps)
        gains = heads[grid.astype(int)] ** 3
        slopes = gains * (self._denominators()[None] * gains - 2) * self.eigenvalues[None] ** 2
        matrices = jnp.einsum("id,gd,jd->gij", self.eigenvectors, gains, self.eigenvectors, precision="highest")
        loss = (jnp.sum(self.eigenvalues) + jnp.sum(slopes, axis=1)) / 2
        return {"loss": Curve(grid, loss), "gain": Curve(grid, matrices)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Gradient descent of values, keys and queries of all heads, by automatic differentiation."""
        del key
        product = partial(jnp.einsum, precision="highest")
        covariates, weights = self._quadrature()
        covariance = product("p,pi,pj->ij", weights, covariates, covariates)
        fourth = product("p,pi,pk,pk,pj->ij", weights, covariates, covariates, covariates, covariates)
        squared = fourth / self.examples + (1 - 1 / self.examples) * product("ij,jk->ik", covariance, covariance)

        def attention(heads):
            values, keys, queries = heads
            return product("h,hi,hj->ij", values, keys, queries)

        def loss(heads):
            matrix = attention(heads)
            explained = product("ij,jk,ik->", matrix, covariance, covariance)
            answered = product("ij,jk,lk,li->", matrix, covariance, matrix, squared)
            return (jnp.trace(covariance) - 2 * explained + answered) / 2

        def step(heads, _):
            value, slopes = jax.value_and_grad(loss)(heads)
            after = jax.tree.map(lambda entry, slope: entry - self.learning_rate * slope, heads, slopes)
            return after, (value, attention(heads))

        directions = self.start * self.eigenvectors.T
        start = (jnp.full(self.eigenvalues.shape, self.start), directions, directions)
        _, (losses, matrices) = jax.lax.scan(step, start, length=self.steps + 1)
        steps = grid.astype(int)
        return {"loss": Curve(grid, losses[steps]), "gain": Curve(grid, matrices[steps])}

    def counterfeit(self) -> "AttentionPlateaus":
        """One of the two terms of the fluctuation missing."""
        return eqx.tree_at(lambda theory: theory.own_share, self, jnp.zeros_like(self.own_share))

    def _denominators(self) -> Float[Array, " size"]:
        """`a_d`."""
        share = self.own_share + jnp.sum(self.eigenvalues) / self.eigenvalues
        return self.eigenvalues * (1 + share / self.examples)

    def _quadrature(self) -> tuple[Float[Array, "nodes size"], Float[Array, " nodes"]]:
        """Covariates at the nodes of the Gauss–Hermite rule with three points per direction, and their weights."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(3)
        size = self.eigenvalues.size
        grid = np.array(list(itertools.product(nodes, repeat=size)))
        shares = np.array(list(itertools.product(weights / weights.sum(), repeat=size))).prod(axis=1)
        scaled = jnp.asarray(grid, self.dtype) * jnp.sqrt(self.eigenvalues)[None]
        return jnp.matmul(scaled, self.eigenvectors.T, precision="highest"), jnp.asarray(shares, self.dtype)


@partial(jax.jit, static_argnums=4)
def _scalar_heads(eigenvalues, denominators, start, learning_rate, steps):
    def step(heads, _):
        return heads + learning_rate * eigenvalues**2 * heads**2 * (1 - denominators * heads**3), heads

    return jax.lax.scan(step, jnp.full(eigenvalues.shape, start), length=steps + 1)[1]
