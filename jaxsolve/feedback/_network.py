"""Networks with explicit weights, and what their forward pass leaves for a backward rule."""

import abc
import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from .._types import ArrayLike, Key
from ._activations import AbstractActivation, Relu
from ._connections import AbstractConnection, Dense, TangentFactor, with_ones

Matrices = tuple[Float[Array, "_ _"], ...]
Biases = tuple[Float[Array, " _"] | None, ...]
Activations = AbstractActivation | tuple[AbstractActivation, ...]


def matrices(arrays: Iterable) -> tuple[Array, ...]:
    """The arrays as arrays of JAX."""
    return tuple(jnp.asarray(array) for array in arrays)


def optional_vectors(arrays: Iterable | None) -> Biases | None:
    """The biases as arrays of JAX; ``None`` where no layer has one."""
    if arrays is None:
        return None
    vectors = tuple(None if array is None else jnp.asarray(array) for array in arrays)
    return None if vectors and all(vector is None for vector in vectors) else vectors


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


def initial_weights(
    widths: Sequence[int],
    generator: np.random.Generator,
    *,
    leading: Sequence[int] = (),
    dtype: jax.typing.DTypeLike = float,
) -> tuple[Float[Array, "*leading _ _"], ...]:
    """Weights of the law of [`MLP.initialise`][], from a generator of NumPy: the same numbers in every dtype.

    `W_l ~ N(0, 2 / n_{l−1})` of shape `(n_l, n_{l−1})`, and `W_L ~ N(0, 1 / n_{L−1})`, drawn in this order.

    Parameters
    ----------
    widths
        `(n_0, …, n_L)`.
    generator
        Its state moves on.
    leading
        Axes in front of those of a matrix, for several initialisations.
    dtype
        Of the result; drawn in double precision.

    Raises
    ------
    ValueError
        As [`weight_variances`][] does.

    >>> [weight.shape for weight in initial_weights((16, 8, 4), np.random.default_rng(0), leading=(5,))]
    [(5, 8, 16), (5, 4, 8)]
    """
    shapes = zip(widths[1:], widths[:-1], weight_variances(widths), strict=True)
    return tuple(
        jnp.asarray(variance**0.5 * generator.standard_normal((*leading, *shape)), dtype) for *shape, variance in shapes
    )


class ForwardPass(eqx.Module):
    """What a forward pass leaves for a backward rule.

    Attributes
    ----------
    activations
        `h_0, …, h_{L−1}`: the layer below each weight matrix, `h_0` the inputs; `(N, n_l)` each.
    gates
        `φ'` at the pre-activations of the hidden layers `1, …, L−1`; zeros and ones for the rectifier.
    outputs
        `f = h_L`, the linear last layer.
    """

    activations: tuple[Float[Array, "examples _"], ...]
    gates: tuple[Float[Array, "examples _"], ...]
    outputs: Float[Array, "examples outputs"]


class AbstractNetwork(eqx.Module):
    """Layers one after the other: `h_0 = x`, `h_l = φ(W_l h_{l−1} + b_l)` for `l < L`, `f(x) = W_L h_{L−1} + b_L`.

    How `W_l` acts on the layer below is told by a connection: on all of it, or on the patches of an image. Every layer
    stands in a row of `n_l` numbers per example, and has parameters of its own.

    Attributes
    ----------
    weights
        `W_1, …, W_L`, with `W_l` of shape `(units, fan_in)`.
    biases
        `b_1, …, b_L` of shapes `(units,)`, with ``None`` for a layer without, or ``None`` for a network without.
    activation
        `φ`, one for all hidden layers or one for each.
    """

    weights: eqx.AbstractVar[Matrices]
    biases: eqx.AbstractVar[Biases | None]
    activation: eqx.AbstractVar[Activations]

    @property
    @abc.abstractmethod
    def connections(self) -> tuple[AbstractConnection, ...]:
        """How each weight matrix acts."""

    @property
    @abc.abstractmethod
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one example."""

    @property
    def widths(self) -> tuple[int, ...]:
        """`(n_0, …, n_L)`: how many numbers each layer holds; for an image channels times height times width."""
        pairs = [side.widths(weight) for side, weight in zip(self.connections, self.weights, strict=True)]
        return (pairs[0][0], *(above for _, above in pairs))

    @property
    def depth(self) -> int:
        """Number of hidden layers, `L − 1`."""
        return len(self.weights) - 1

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of the parameters."""
        return self.weights[0].dtype

    def forward(self, inputs: Num[ArrayLike, "examples *features"]) -> ForwardPass:
        """Evaluate the network and keep what backward rules need.

        Integer inputs are converted to the dtype of the network. A NaN among the inputs or the parameters comes out as
        NaN, in the outputs and in what backward rules make of them.

        Parameters
        ----------
        inputs
            One example each, of shape ``input_shape`` or as a row of `n_0` numbers; there may be none.

        Raises
        ------
        ValueError
            Where the inputs do not have one of these shapes, or have another floating dtype than the network.
        """
        hidden = self._checked(inputs)
        layers = list(zip(self.connections, self.weights, self._vectors(), strict=True))
        activations, gates = [hidden], []
        for (connection, weight, bias), activation in zip(layers[:-1], self._activations(), strict=True):
            preactivation = connection.apply(hidden, weight, bias)
            hidden = activation(preactivation)
            activations.append(hidden)
            gates.append(activation.derivative(preactivation))
        connection, weight, bias = layers[-1]
        return ForwardPass(tuple(activations), tuple(gates), connection.apply(hidden, weight, bias))

    def __call__(self, inputs: Num[ArrayLike, "examples *features"]) -> Float[Array, "examples outputs"]:
        """The outputs `f`, one row per example; raises as [`AbstractNetwork.forward`][] does."""
        return self.forward(inputs).outputs

    def tangent_factors(
        self, forward: ForwardPass, deltas: Sequence[Float[Array, "#examples outputs _"]]
    ) -> tuple[TangentFactor, ...]:
        """The factors of the tangent kernel, one per layer.

        A dense layer gives `h_{l−1}`, with a column of ones for a bias, and `δ_l`. A convolution uses its weights at
        every position, so it gives whole per-example gradients, summed over the positions.

        Parameters
        ----------
        forward
            At the examples.
        deltas
            The errors `δ_1, …, δ_L` of some rule for the cotangents `e_1, …, e_{n_L}`.
        """
        layers = list(zip(self.connections, forward.activations, deltas, self._vectors(), strict=True))
        hidden = [
            connection.tangent_factor(below, errors, use_bias=bias is not None)
            for connection, below, errors, bias in layers[:-1]
        ]
        _, below, _, bias = layers[-1]
        return (*hidden, TangentFactor(below if bias is None else with_ones(below), None))

    def _vectors(self) -> Biases:
        return (None,) * len(self.weights) if self.biases is None else self.biases

    def _activations(self) -> tuple[AbstractActivation, ...]:
        return self.activation if isinstance(self.activation, tuple) else (self.activation,) * self.depth

    def _checked(self, inputs) -> Array:
        inputs = jnp.asarray(inputs)
        shape, features = self.input_shape, math.prod(self.input_shape)
        if not inputs.ndim or inputs.shape[1:] not in (shape, (features,)):
            images = "" if len(shape) == 1 else f" or (examples, {', '.join(map(str, shape))})"
            raise ValueError(
                f"Inputs have shape (examples, {features}){images}, the width of this network; got {inputs.shape}."
            )
        if jnp.issubdtype(inputs.dtype, jnp.integer):
            inputs = inputs.astype(self.dtype)
        if inputs.dtype != self.dtype:
            raise ValueError(
                f"The network has dtype {self.dtype}, the inputs {inputs.dtype}. Cast one of them with astype."
            )
        return inputs.reshape(inputs.shape[0], features)


def check_parameters(network: AbstractNetwork) -> None:
    """What every network checks of its own fields: consecutive layers, biases, activations and one dtype."""
    shapes = [weight.shape for weight in network.weights]
    if not shapes or any(len(shape) != 2 for shape in shapes):
        raise ValueError(f"weights holds at least one matrix of shape (units, fan_in); got shapes {shapes}.")
    pairs = [side.widths(weight) for side, weight in zip(network.connections, network.weights, strict=True)]
    for layer, ((_, units), (below, _)) in enumerate(pairwise(pairs), start=1):
        if units != below:
            raise ValueError(
                f"The weights of layer {layer + 1} have shape {shapes[layer]}, but layer {layer} has {units} units, "
                f"not {below}. W_l has shape (n_l, n_(l-1))."
            )
    if network.biases is not None:
        expected = [(shape[0],) for shape in shapes]
        found = [None if bias is None else bias.shape for bias in network.biases]
        if [one or other for one, other in zip(found, expected, strict=False)] != expected or len(found) > len(shapes):
            raise ValueError(f"biases holds one vector per layer, of shapes {expected}; got {found}.")
    if isinstance(network.activation, tuple) and len(network.activation) != network.depth:
        raise ValueError(
            f"activation is one for all hidden layers, or one for each of {network.depth}; got "
            f"{len(network.activation)}."
        )
    dtypes = {leaf.dtype for leaf in (*network.weights, *(network.biases or ())) if leaf is not None}
    if len(dtypes) != 1 or not jnp.issubdtype(network.dtype, jnp.floating):
        raise ValueError(f"All weights and biases share one floating dtype; got {sorted(map(str, dtypes))}.")


class MLP(AbstractNetwork):
    """A multilayer perceptron with explicit weights and a linear last layer.

    `h_0 = x`, `h_l = φ(W_l h_{l−1} + b_l)` for `l < L`, `f(x) = W_L h_{L−1} + b_L`. Every layer has parameters of
    its own; a matrix that is used twice is two parameters here.

    Parameters
    ----------
    weights
        `W_1, …, W_L`, with `W_l` of shape `(n_l, n_{l−1})`.
    biases
        `b_1, …, b_L` of shapes `(n_l,)`, with ``None`` for a layer without, or ``None`` for a network without biases.
    activation
        `φ` of the hidden layers: one for all, or a tuple with one for each.

    Raises
    ------
    ValueError
        Where the shapes of consecutive layers do not fit, or the arrays are not of one floating dtype.

    >>> network = MLP([jnp.ones((3, 2)), jnp.ones((1, 3))])
    >>> network(jnp.array([[1.0, 2.0], [-1.0, 0.0]])).tolist()
    [[9.0], [0.0]]
    """

    weights: Matrices = eqx.field(converter=matrices)
    biases: Biases | None = eqx.field(converter=optional_vectors, default=None)
    activation: Activations = Relu()

    def __check_init__(self):
        check_parameters(self)

    @classmethod
    def initialise(
        cls,
        widths: Sequence[int],
        *,
        activation: Activations = Relu(),
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
    def connections(self) -> tuple[AbstractConnection, ...]:
        """Every layer sees the whole layer below."""
        return (Dense(),) * len(self.weights)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """`(n_0,)`."""
        return (self.weights[0].shape[1],)


def gaussian_matrices(
    shapes: Iterable[tuple[int, int]], variances: Iterable[float], *, dtype: jax.typing.DTypeLike, key: Key
) -> tuple[Array, ...]:
    """Independent Gaussian matrices, cut from one draw: compiling a draw costs more than the draw."""
    shapes = tuple(shapes)
    ends = [*accumulate(math.prod(shape) for shape in shapes)]
    entries = jax.random.normal(key, (ends[-1] if ends else 0,), dtype)
    pieces = zip(shapes, variances, [0, *ends], ends, strict=False)
    return tuple(variance**0.5 * entries[start:end].reshape(shape) for shape, variance, start, end in pieces)
