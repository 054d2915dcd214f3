"""A linear transformer that predicts in context is a preconditioned Richardson iteration."""

from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..solver import trajectory

INSTANCE_SEED = 23


class LinearTransformerRichardson(AbstractTheory):
    """After `l` layers the label entry of the query is `−x_q · w_l`, with `w_{l+1} = w_l + Aᵀ (b − H w_l)`.

    A prompt is a matrix of tokens, `n` examples and one query whose label is left at zero,

        Z_0 = [ x_1 ... x_n  x_q ]
              [ y_1 ... y_n   0  ],

    and every layer of the transformer is linear attention with a residual connection and no other block,

        Z ← Z + (1/n) P Z M (Zᵀ Q Z),

    where `M` masks the query, `P` is zero but for a 1 in the corner of the labels, and `Q` is zero but for the block
    `−A` of the covariates. The iteration solves the normal equations, `H = (1/n) Σ_i x_i x_iᵀ` and
    `b = (1/n) Σ_i y_i x_i`, with the preconditioner `Aᵀ` and the start `w_0 = 0`. The labels of the examples turn
    into residuals `y_i − x_i · w_l`. Labels are noisy, covariates have eigenvalues between 0.3 and 1, and `A` is not
    symmetric.

    The prediction runs the iteration of the solver; the measurement runs the layers on the tokens.

    The counterfeit takes `A` itself as preconditioner.

    Attributes
    ----------
    covariates, labels
        `x_i` and `y_i`.
    queries
        `x_q`.
    weights
        `A`, the same in all layers.
    """

    covariates: Float[Array, "prompts examples size"]
    labels: Float[Array, "prompts examples"]
    queries: Float[Array, "prompts size"]
    weights: Float[Array, "size size"]
    layers: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=64.0, relative_to="curve")
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
        "The output of a linear transformer of l layers and the residuals that it stores in the labels are those of l "
        "Richardson steps with the preconditioner A^T on the normal equations of the prompt, at every depth and for "
        "every prompt, relative to the largest norm over depths."
    )
    observables: ClassVar[tuple[str, ...]] = ("output", "residual")
    assumptions: ClassVar[tuple[str, ...]] = (
        "attention without softmax",
        "the value matrix writes labels alone, and queries and keys read covariates alone",
        "the query is masked as a key",
    )
    breaks_when: ClassVar[str] = "A layer has weights that move the covariates, a softmax, or no mask on the query."
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        prompts: int = 8,
        examples: int = 20,
        size: int = 6,
        layers: int = 12,
        noise: float = 0.3,
        instance_seed: int = INSTANCE_SEED,
    ) -> "LinearTransformerRichardson":
        """Eight prompts of 20 examples in six dimensions, 12 layers."""
        draw = np.random.default_rng(instance_seed).standard_normal
        scale = np.sqrt(np.linspace(0.3, 1.0, size))
        covariates = scale * draw((prompts, examples, size))
        labels = np.einsum("pnd,pd->pn", covariates, draw((prompts, size))) + noise * draw((prompts, examples))
        return cls(
            covariates=jnp.asarray(covariates, dtype),
            labels=jnp.asarray(labels, dtype),
            queries=jnp.asarray(scale * draw((prompts, size)), dtype),
            weights=jnp.asarray(0.5 * np.eye(size) + 0.2 * draw((size, size)) / np.sqrt(size), dtype),
            layers=layers,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        prompts: int = 64,
        examples: int = 80,
        size: int = 20,
        layers: int = 32,
        **options,
    ) -> "LinearTransformerRichardson":
        """64 prompts of 80 examples in 20 dimensions, 32 layers; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, prompts=prompts, examples=examples, size=size, layers=layers, **options)

    def grid(self) -> Float[Array, " points"]:
        """The number of layers."""
        return jnp.arange(1, self.layers + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Iterates of the solver, read at the query and at the examples."""
        product, count = partial(jnp.einsum, precision="highest"), self.labels.shape[1]
        operators = product("pni,pnj->pij", self.covariates, self.covariates) / count
        sides = product("pni,pn->pi", self.covariates, self.labels) / count
        iterates = trajectory(self.weights.T, operators, sides, jnp.zeros_like(sides), depth=self.layers)[1:]
        return {
            "output": Curve(grid, product("lpi,pi->lp", iterates, self.queries)),
            "residual": Curve(grid, self.labels[None] - product("lpi,pni->lpn", iterates, self.covariates)),
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Layers of attention on the tokens; the output is minus the label entry of the query."""
        del key
        prompts, count, size = self.covariates.shape
        columns = jnp.concatenate([self.covariates, self.queries[:, None]], axis=1)
        labels = jnp.concatenate([self.labels, jnp.zeros((prompts, 1), self.dtype)], axis=1)
        tokens = jnp.concatenate([columns, labels[:, :, None]], axis=2).swapaxes(1, 2)
        value = jnp.zeros((size + 1, size + 1), self.dtype).at[size, size].set(1)
        query_key = jnp.zeros_like(value).at[:size, :size].set(-self.weights)
        mask = jnp.eye(count + 1, dtype=self.dtype).at[count, count].set(0)

        def layer(tokens, _):
            product = partial(jnp.matmul, precision="highest")
            scores = product(product(tokens.swapaxes(1, 2), query_key[None]), tokens)
            tokens = tokens + product(product(product(value[None], tokens), mask[None]), scores) / count
            return tokens, tokens[:, size]

        _, rows = jax.lax.scan(layer, tokens, length=self.layers)
        return {"output": Curve(grid, -rows[:, :, count]), "residual": Curve(grid, rows[:, :, :count])}

    def counterfeit(self) -> "LinearTransformerRichardson":
        """The preconditioner without its transpose."""
        return eqx.tree_at(lambda theory: theory.weights, self, self.weights.T)
