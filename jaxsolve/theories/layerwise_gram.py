"""Tangent kernels without a Jacobian: the layerwise Gram identity, for backpropagation and its alternatives."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..datasets import digits
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..feedback import MLP, Backprop, DirectFeedbackAlignment, FeedbackAlignment, weight_variances
from ..tangent import kernel

INSTANCE_SEED = 422

Matrices = tuple[Float[Array, "_ _"], ...]


class LayerwiseGram(AbstractTheory):
    """`K = J J̃^T` is a sum over layers of two Gram matrices, multiplied entry by entry.

    `K[(n,c),(m,c')] = Σ_l ⟨h_{l−1}(n), h_{l−1}(m)⟩ ⟨δ_l^{n,c}, δ̃_l^{m,c'}⟩`, with `δ` the errors under
    backpropagation and `δ̃` those under the rule, for one-hot output cotangents; with biases, one is added to every
    inner product of activations. The prediction is that sum. The measurement forms both Jacobians by reverse-mode
    differentiation and multiplies them: `J` of a rectified network, `J̃` of the same network with the cotangents sent
    through the feedback matrices.

    The counterfeit counts biases that the network does not have: all errors and activations are right, and one is
    added to every inner product of activations.

    Attributes
    ----------
    inputs
        Digits, each image divided by its norm.
    weights
        Of one rectified network per number of hidden layers.
    biases
        Of the same networks; ``None`` for networks without.
    feedback, direct
        Matrices of feedback alignment, `(n_l, n_{l+1})`, and of direct feedback alignment, `(n_l, n_L)`.
    """

    inputs: Float[Array, "examples 784"]
    weights: tuple[Matrices, ...]
    biases: tuple[tuple[Float[Array, " _"], ...], ...] | None
    feedback: tuple[Matrices, ...]
    direct: tuple[Matrices, ...]
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=64.0)
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, computational tool}
}"""
    statement: ClassVar[str] = (
        "The tangent kernels J J^T of backpropagation and J J~^T of feedback alignment and direct feedback alignment "
        "are sums over layers of Gram matrices of activations times Gram matrices of errors; no factor 1/N, row "
        "n n_L + c for output c of example n."
    )
    observables: ClassVar[tuple[str, ...]] = ("backprop", "feedback_alignment", "direct_feedback_alignment")
    assumptions: ClassVar[tuple[str, ...]] = (
        "fully connected layers, each with parameters of its own",
        "the weight gradient of every layer is its error times its input",
    )
    breaks_when: ClassVar[str] = "A weight matrix is used twice: the cross terms between its uses are missing."
    effect: ClassVar[float] = 1e-3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        examples: int = 6,
        width: int = 12,
        depths: tuple[int, ...] = (1, 2, 3, 6),
        use_bias: bool = False,
        instance_seed: int = INSTANCE_SEED,
    ) -> "LayerwiseGram":
        """Six digits, networks of width 12 with 1, 2, 3 and 6 hidden layers."""
        generator = np.random.default_rng(instance_seed)

        def drawn(shapes, variances):
            pairs = zip(shapes, variances, strict=True)
            return tuple(
                jnp.asarray(variance**0.5 * generator.standard_normal(shape), dtype) for shape, variance in pairs
            )

        weights, biases, feedback, direct = [], [], [], []
        for depth in depths:
            hidden = [width] * depth
            widths = (784, *hidden, 10)
            variances = weight_variances(widths)
            weights.append(drawn(zip(widths[1:], widths[:-1], strict=True), variances))
            feedback.append(drawn(zip(hidden, widths[2:], strict=True), variances[1:]))
            direct.append(drawn([(size, 10) for size in hidden], variances[1:]))
            biases.append(drawn([(size,) for size in widths[1:]], [0.01] * (depth + 1)))
        return cls(
            inputs=digits(examples, dtype=dtype).images,
            weights=tuple(weights),
            biases=tuple(biases) if use_bias else None,
            feedback=tuple(feedback),
            direct=tuple(direct),
        )

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, examples: int = 16, width: int = 64, **options
    ) -> "LayerwiseGram":
        """Sixteen digits, networks of width 64; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, examples=examples, width=width, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of hidden layers."""
        return jnp.asarray([len(matrices) for matrices in self.feedback], self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The layerwise sums."""
        biases = self.biases or (None,) * len(self.weights)
        networks = [MLP(*parameters) for parameters in zip(self.weights, biases, strict=True)]
        rules = (
            [Backprop() for _ in networks],
            [FeedbackAlignment(matrices) for matrices in self.feedback],
            [DirectFeedbackAlignment(matrices) for matrices in self.direct],
        )
        kernels = _layerwise(networks, self.inputs, rules)
        return {name: Curve(grid, value) for name, value in zip(self.observables, kernels, strict=True)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """The products of explicit Jacobians."""
        del key
        rows = [[], [], []]
        for index, weights in enumerate(self.weights):
            parameters = (weights, self.biases and self.biases[index])
            exact = _jacobian("backprop", parameters, (), self.inputs)
            sequential = _jacobian("feedback_alignment", parameters, self.feedback[index], self.inputs)
            direct = _jacobian("direct_feedback_alignment", parameters, self.direct[index], self.inputs)
            for row, second in zip(rows, (exact, sequential, direct), strict=True):
                row.append(jnp.matmul(exact, second.T, precision="highest"))
        return {name: Curve(grid, jnp.stack(row)) for name, row in zip(self.observables, rows, strict=True)}

    def counterfeit(self) -> "LayerwiseGram":
        """Biases of zero counted among the parameters."""
        zeros = tuple(tuple(jnp.zeros(weight.shape[0], self.dtype) for weight in net) for net in self.weights)
        return eqx.tree_at(lambda theory: theory.biases, self, zeros, is_leaf=lambda leaf: leaf is None)


@eqx.filter_jit
def _layerwise(networks, inputs, rules):
    return [
        jnp.stack([kernel(network, inputs, rule) for network, rule in zip(networks, column, strict=True)])
        for column in rules
    ]


@jax.custom_vjp
def _attached(values, hidden, matrix):
    """``values``, with their cotangent also sent to ``hidden`` through ``matrix``."""
    return values


_attached.defvjp(
    lambda values, hidden, matrix: (values, matrix),
    lambda matrix, cotangent: (
        cotangent,
        jnp.matmul(cotangent, matrix.T, precision="highest"),
        jnp.zeros_like(matrix),
    ),
)


def _outputs(name, parameters, matrices, inputs):
    """A rectified network, written out; under the alternatives no cotangent passes through a weight matrix."""
    weights, biases = parameters
    hidden = [inputs]
    for layer, weight in enumerate(weights):
        below = hidden[-1]
        source = below if name == "backprop" else jax.lax.stop_gradient(below)
        values = jnp.matmul(source, weight.T, precision="highest")
        if biases is not None:
            values = values + biases[layer][None, :]
        if name == "feedback_alignment" and layer > 0:
            values = _attached(values, below, matrices[layer - 1])
        hidden.append(values if layer == len(weights) - 1 else jnp.where(values > 0, values, 0))
    outputs = hidden[-1]
    if name == "direct_feedback_alignment":
        for below, matrix in zip(hidden[1:-1], matrices, strict=True):
            outputs = _attached(outputs, below, matrix)
    return outputs.ravel()


def _jacobian(name, parameters, matrices, inputs):
    leaves = jax.tree.leaves(jax.jacrev(lambda free: _outputs(name, free, matrices, inputs))(parameters))
    return jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in leaves], axis=1)
