"""Linear attention with merged key and query trains like a linear network with one hidden layer."""

from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind

INSTANCE_SEED = 24


class MergedAttention(AbstractTheory):
    """The output `Σ_h v_h βᵀ U_h x_q` of merged attention is `w₂ᵀ W₁ vec(β x_qᵀ)`, before and during training.

    On the tokens `X`, `N` examples `(x_i, y_i)` and a query `(x_q, 0)` as columns, the attention computes

        X + Σ_h (1/N) V_h X Xᵀ M_h X,

    with one value matrix `V_h` and one merged matrix `M_h` of key and query per head, and its output is the label
    entry of the query. Where the last row of `V_h` is `(0, v_h)` and the first columns of `M_h` are `U_h` above a row
    of zeros, this is a linear network with the features `β x_qᵀ`, `β = (1/N) Σ_i y_i x_i`, the first layer
    `W₁ = (vec U_h)_h` and the second `w₂ = (v_h)_h`.

    Gradient descent on `1/(2 S) Σ (output − y_q)²` over `S` prompts keeps the zeros where every prompt comes with
    both signs of its labels: the gradients of those entries are even in the labels times an odd error. The other
    entries of `V_h` and `M_h` are random and do not matter. The measurement trains all entries of both matrices by
    automatic differentiation; the prediction trains the network by its two gradients, written out.

    The counterfeit divides by `N + 1`, the number of columns.

    Attributes
    ----------
    tokens
        `X` of each prompt, both signs.
    targets
        `y_q`.
    values, merged
        `V_h` and `M_h` at the start.
    learning_rate
        Multiplies the gradient of the loss above.
    examples
        `N`, by which the prediction divides.
    """

    tokens: Float[Array, "prompts rows columns"]
    targets: Float[Array, " prompts"]
    values: Float[Array, "heads rows rows"]
    merged: Float[Array, "heads rows rows"]
    learning_rate: Float[Array, ""]
    examples: Float[Array, ""]
    steps: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=64.0, relative_to="curve")
    source: ClassVar[str] = """@inproceedings{zhang2025training,
  author = {Zhang, Yedi and Singh, Aaditya K. and Latham, Peter E. and Saxe, Andrew},
  title = {Training Dynamics of In-Context Learning in Linear Attention},
  booktitle = {International Conference on Machine Learning},
  year = {2025},
  eprint = {2501.16265},
  archivePrefix = {arXiv},
}"""
    statement: ClassVar[str] = (
        "Outputs and weights of merged linear attention under gradient descent are those of a linear network with one "
        "hidden layer on the features beta x_q^T, step by step (half the mean square over prompts), relative to the "
        "largest norm on the curve; the blocks of weights that start at zero remain zero."
    )
    observables: ClassVar[tuple[str, ...]] = ("output", "weights")
    assumptions: ClassVar[tuple[str, ...]] = (
        "attention without softmax, key and query merged",
        "the blocks between labels and covariates start at zero",
        "the prompts come in pairs of opposite labels",
    )
    breaks_when: ClassVar[str] = (
        "The set of prompts is not symmetric in its labels, a zero block starts elsewhere, or steps are so large that "
        "training oscillates and lets rounding in the zero blocks grow."
    )
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        pairs: int = 32,
        examples: int = 31,
        size: int = 4,
        heads: int = 3,
        steps: int = 150,
        learning_rate: float = 0.1,
        initial_scale: float = 0.5,
        instance_seed: int = INSTANCE_SEED,
    ) -> "MergedAttention":
        """32 prompts and their negatives, three heads, 150 steps."""
        draw = np.random.default_rng(instance_seed).standard_normal
        eigenvalues = np.arange(1, size + 1) / (size * (size + 1) / 2)
        covariates = np.sqrt(eigenvalues) * draw((pairs, examples + 1, size))
        labels = np.einsum("pnd,pd->pn", covariates, draw((pairs, size)))
        targets = labels[:, -1].copy()
        labels[:, -1] = 0
        tokens = np.stack([np.dstack([covariates, sign * labels]) for sign in (1, -1)]).swapaxes(2, 3)
        values, merged = initial_scale * draw((2, heads, size + 1, size + 1))
        values[:, size, :size] = 0
        merged[:, size, :size] = 0
        return cls(
            tokens=jnp.asarray(tokens.reshape(-1, size + 1, examples + 1), dtype),
            targets=jnp.asarray(np.concatenate([targets, -targets]), dtype),
            values=jnp.asarray(values, dtype),
            merged=jnp.asarray(merged, dtype),
            learning_rate=jnp.asarray(learning_rate, dtype),
            examples=jnp.asarray(examples, dtype),
            steps=steps,
        )

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, pairs: int = 1000, heads: int = 8, steps: int = 600, **options
    ) -> "MergedAttention":
        """1000 prompts and their negatives, eight heads, 600 steps; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, pairs=pairs, heads=heads, steps=steps, **options)

    def grid(self) -> Float[Array, " points"]:
        """The step of gradient descent."""
        return jnp.arange(self.steps + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Gradient descent of the two layers of the linear network."""
        outputs, first, second = _two_layers(
            self.tokens, self.targets, self.values, self.merged, self.learning_rate, self.examples, self.steps
        )
        size = self.tokens.shape[1] - 1
        last = jnp.concatenate([jnp.zeros((*second.shape, size), self.dtype), second[:, :, None]], axis=2)
        columns = jnp.pad(first.reshape(*second.shape, size, size), ((0, 0), (0, 0), (0, 1), (0, 0)))
        return {"output": Curve(grid, outputs), "weights": Curve(grid, _joined(last, columns))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Gradient descent of all entries of the matrices, by automatic differentiation."""
        del key
        product = partial(jnp.einsum, precision="highest")
        size, count = self.tokens.shape[1] - 1, self.tokens.shape[2] - 1

        def outputs(parameters):
            values, merged = parameters
            gram = product("pin,pjn->pij", self.tokens, self.tokens)
            attended = product("hij,pjk,hkl,pln->pin", values, gram, merged, self.tokens)
            return (self.tokens + attended / count)[:, size, count]

        def step(parameters, _):
            def loss(parameters):
                found = outputs(parameters)
                return jnp.mean((found - self.targets) ** 2) / 2, found

            gradients, found = jax.grad(loss, has_aux=True)(parameters)
            after = jax.tree.map(lambda value, slope: value - self.learning_rate * slope, parameters, gradients)
            values, merged = parameters
            return after, (found, _joined(values[:, size], merged[:, :, :size]))

        _, (found, weights) = jax.lax.scan(step, (self.values, self.merged), length=self.steps + 1)
        return {"output": Curve(grid, found), "weights": Curve(grid, weights)}

    def counterfeit(self) -> "MergedAttention":
        """The mean over all columns, the query among them."""
        return eqx.tree_at(lambda theory: theory.examples, self, self.examples + 1)


def _joined(last_rows, columns):
    """Entries that the output depends on, in one axis."""
    *lead, heads, _, _ = columns.shape
    return jnp.concatenate([last_rows, columns.reshape(*lead, heads, -1)], axis=-1)


@partial(jax.jit, static_argnums=6)
def _two_layers(tokens, targets, values, merged, learning_rate, examples, steps):
    product, size = partial(jnp.einsum, precision="highest"), tokens.shape[1] - 1
    covariates, labels = tokens[:, :size, :-1], tokens[:, size, :-1]
    means = product("pn,pin->pi", labels, covariates) / examples
    features = (means[:, :, None] * tokens[:, :size, -1][:, None, :]).reshape(len(tokens), -1)

    def step(layers, _):
        first, second = layers
        hidden = product("hf,pf->ph", first, features)
        found = product("h,ph->p", second, hidden)
        error = (found - targets) / targets.size
        slopes = product("h,p,pf->hf", second, error, features), product("p,ph->h", error, hidden)
        return (first - learning_rate * slopes[0], second - learning_rate * slopes[1]), (found, first, second)

    start = merged[:, :size, :size].reshape(len(merged), -1), values[:, size, size]
    return jax.lax.scan(step, start, length=steps + 1)[1]
