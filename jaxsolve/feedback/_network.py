"""Multilayer perceptrons with explicit weights, and what their forward pass leaves for a backward rule."""

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from .._types import ArrayLike, Key
from ._activations import AbstractActivation, Relu


def _matrices(arrays: Iterable) -> tuple[Array, ...]:
    return tuple(jnp.asarray(array) for array in arrays)


def _optional_vectors(arrays: Iterable | None) -> tuple[Array, ...] | None:
    return None if arrays is None else _matrices(arrays)


def weight_variances(widths: Sequence[int], *, hidden_gain: float = 2.0, output_gain: float = 1.0) -> tuple[float, ...]:
    """Variances of the entries of `W_1, …, W_L`: `hidden_gain / n_{l−1}`, and `output_gain / n_{L−1}` for the last.

    Parameters
    ----------
    widths
        `(n_0, …, n_L)`: inputs, hidden layers, outputs.
    hidden_gain, output_gain
        2 keeps the size of a rectified layer, 1 that of a linear one (He et al., 2015).

    Raises
    ------
    ValueError
        For fewer than two widths, a width below one or a negative gain.

    >>> weight_variances((16, 8, 4))
    (0.125, 0.125)
    """
    if len(widths) < 2 or min(widths) < 1:
        raise ValueError(f"widths holds inputs, hidden layers and outputs, each at least 1; got {tuple(widths)}.")
    if hidden_gain < 0 or output_gain < 0:
        raise ValueError(f"Gains are not negative; got hidden_gain={hidden_gain}, output_gain={output_gain}.")
    return (*(hidden_gain / fan_in for fan_in in widths[:-2]), output_gain / widths[-2])


class ForwardPass(eqx.Module):
    """What a forward pass leaves for a backward rule.

    Attributes
    ----------
    activations
        `h_0, …, h_{L−1}`: what each weight matrix multiplies, `h_0` the inputs; `(N, n_l)` each.
    gates
        `φ'` at the pre-activations of the hidden layers `1, …, L−1`; zeros and ones for the rectifier.
    outputs
        `f = h_L`, the linear last layer.
    """

    activations: tuple[Float[Array, "examples _"], ...]
    gates: tuple[Float[Array, "examples _"], ...]
    outputs: Float[Array, "examples outputs"]


class TangentFactor(eqx.Module):
    """What one layer contributes to tangent kernels, as factors of its per-example gradients.

    The contribution to a kernel between examples `n` and `m` and outputs `c` and `c'` is
    `⟨hidden(n), hidden(m)⟩ ⟨errors(n, c), errors'(m, c')⟩`, where the second ``errors`` may come from another rule.

    Attributes
    ----------
    hidden
        `(N, features)`, or ``None`` for a first factor of one: then ``errors`` are whole per-example gradients.
    errors
        `(N, n_L, units)`, or ``None`` for the output layer, whose second factor is 1 for `c = c'` and else 0.
    """

    hidden: Float[Array, "examples features"] | None
    errors: Float[Array, "examples outputs units"] | None


class MLP(eqx.Module):
    """A multilayer perceptron with explicit weights and a linear last layer.

    `h_0 = x`, `h_l = φ(W_l h_{l−1} + b_l)` for `l < L`, `f(x) = W_L h_{L−1} + b_L`. Every layer has parameters of
    its own; a matrix that is used twice is two parameters here.

    Parameters
    ----------
    weights
        `W_1, …, W_L`, with `W_l` of shape `(n_l, n_{l−1})`.
    biases
        `b_1, …, b_L` of shapes `(n_l,)`, or ``None`` for a network without biases.
    activation
        `φ` of the hidden layers.

    Raises
    ------
    ValueError
        Where the shapes of consecutive layers do not fit, or the arrays are not of one floating dtype.

    >>> network = MLP([jnp.ones((3, 2)), jnp.ones((1, 3))])
    >>> network(jnp.array([[1.0, 2.0], [-1.0, 0.0]])).tolist()
    [[9.0], [0.0]]
    """

    weights: tuple[Float[Array, "_ _"], ...] = eqx.field(converter=_matrices)
    biases: tuple[Float[Array, " _"], ...] | None = eqx.field(converter=_optional_vectors, default=None)
    activation: AbstractActivation = Relu()

    def __check_init__(self):
        shapes = [weight.shape for weight in self.weights]
        if not shapes or any(len(shape) != 2 for shape in shapes):
            raise ValueError(f"weights holds at least one matrix of shape (n_l, n_(l-1)); got shapes {shapes}.")
        for layer in range(1, len(shapes)):
            if shapes[layer][1] != shapes[layer - 1][0]:
                raise ValueError(
                    f"The weights of layer {layer + 1} have shape {shapes[layer]}, but layer {layer} has "
                    f"{shapes[layer - 1][0]} units. W_l has shape (n_l, n_(l-1))."
                )
        if self.biases is not None:
            expected = [(shape[0],) for shape in shapes]
            found = [bias.shape for bias in self.biases]
            if found != expected:
                raise ValueError(f"biases holds one vector per layer, of shapes {expected}; got {found}.")
        dtypes = {leaf.dtype for leaf in (*self.weights, *(self.biases or ()))}
        if len(dtypes) != 1 or not jnp.issubdtype(self.dtype, jnp.floating):
            raise ValueError(f"All weights and biases share one floating dtype; got {sorted(map(str, dtypes))}.")

    @classmethod
    def initialise(
        cls,
        widths: Sequence[int],
        *,
        activation: AbstractActivation = Relu(),
        use_bias: bool = False,
        hidden_gain: float = 2.0,
        output_gain: float = 1.0,
        dtype: jax.typing.DTypeLike = float,
        key: Key,
    ) -> "MLP":
        """A network with `W_l ~ N(0, hidden_gain / n_{l−1})`, `W_L ~ N(0, output_gain / n_{L−1})` and biases zero.

        Parameters
        ----------
        widths
            `(n_0, …, n_L)`: inputs, hidden layers, outputs.
        activation, use_bias
            As in the class; biases start at zero.
        hidden_gain, output_gain
            See [`weight_variances`][].
        dtype
            Of the parameters.
        key
            A typed key.

        Raises
        ------
        ValueError
            As [`weight_variances`][] does.
        """
        variances = weight_variances(widths, hidden_gain=hidden_gain, output_gain=output_gain)
        shapes = zip(widths[1:], widths[:-1], strict=True)
        weights = gaussian_matrices(shapes, variances, dtype=dtype, key=key)
        biases = tuple(jnp.zeros(width, dtype) for width in widths[1:]) if use_bias else None
        return cls(weights, biases, activation)

    @property
    def widths(self) -> tuple[int, ...]:
        """`(n_0, …, n_L)`."""
        return (self.weights[0].shape[1], *(weight.shape[0] for weight in self.weights))

    @property
    def depth(self) -> int:
        """Number of hidden layers, `L − 1`."""
        return len(self.weights) - 1

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of the parameters."""
        return self.weights[0].dtype

    def forward(self, inputs: Num[ArrayLike, "examples features"]) -> ForwardPass:
        """Evaluate the network and keep what backward rules need.

        Integer inputs are converted to the dtype of the network.

        Raises
        ------
        ValueError
            Where the inputs are not a matrix of `n_0` columns, or have another floating dtype than the network.
        """
        hidden = self._checked(inputs)
        biases = self.biases or (None,) * len(self.weights)
        activations, gates = [hidden], []
        for weight, bias in zip(self.weights[:-1], biases[:-1], strict=True):
            preactivation = _affine(hidden, weight, bias)
            hidden = self.activation(preactivation)
            activations.append(hidden)
            gates.append(self.activation.derivative(preactivation))
        return ForwardPass(tuple(activations), tuple(gates), _affine(hidden, self.weights[-1], biases[-1]))

    def __call__(self, inputs: Num[ArrayLike, "examples features"]) -> Float[Array, "examples outputs"]:
        """The outputs `f`, one row per example; raises as [`MLP.forward`][] does."""
        return self.forward(inputs).outputs

    def tangent_factors(
        self, forward: ForwardPass, deltas: Sequence[Float[Array, "#examples outputs _"]]
    ) -> tuple[TangentFactor, ...]:
        """The factors of the tangent kernel, one per layer: `h_{l−1}`, with a column of ones for a bias, and `δ_l`.

        Parameters
        ----------
        forward
            At the examples.
        deltas
            The errors `δ_1, …, δ_L` of some rule for the cotangents `e_1, …, e_{n_L}`.
        """
        hidden = forward.activations
        if self.biases is not None:
            hidden = tuple(jnp.concatenate([layer, jnp.ones_like(layer[:, :1])], axis=1) for layer in hidden)
        return tuple(TangentFactor(*pair) for pair in zip(hidden, (*deltas[:-1], None), strict=True))

    def _checked(self, inputs) -> Array:
        inputs = jnp.asarray(inputs)
        features = self.widths[0]
        if inputs.ndim != 2 or inputs.shape[1] != features:
            raise ValueError(
                f"Inputs have shape (examples, {features}), the width of this network; got {inputs.shape}."
            )
        if jnp.issubdtype(inputs.dtype, jnp.integer):
            return inputs.astype(self.dtype)
        if inputs.dtype != self.dtype:
            raise ValueError(
                f"The network has dtype {self.dtype}, the inputs {inputs.dtype}. Cast one of them with astype."
            )
        return inputs


def _affine(hidden: Array, weight: Array, bias: Array | None) -> Array:
    product = jnp.matmul(hidden, weight.T, precision="highest")
    return product if bias is None else product + bias[None, :]


def gaussian_matrices(
    shapes: Iterable[tuple[int, int]], variances: Iterable[float], *, dtype: jax.typing.DTypeLike, key: Key
) -> tuple[Array, ...]:
    """Independent Gaussian matrices, cut from one draw: compiling a draw costs more than the draw."""
    shapes = tuple(shapes)
    ends = [*accumulate(math.prod(shape) for shape in shapes)]
    entries = jax.random.normal(key, (ends[-1] if ends else 0,), dtype)
    pieces = zip(shapes, variances, [0, *ends], ends, strict=False)
    return tuple(variance**0.5 * entries[start:end].reshape(shape) for shape, variance, start, end in pieces)
