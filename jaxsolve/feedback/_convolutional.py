"""Convolutional networks, with patches as matrices."""

import math
from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Key
from ._activations import Relu
from ._connections import AbstractConnection, Convolution, Dense
from ._network import (
    AbstractNetwork,
    Activations,
    Biases,
    Matrices,
    check_parameters,
    gaussian_matrices,
    matrices,
    optional_vectors,
    weight_variances,
)


class ConvolutionalNetwork(AbstractNetwork):
    """Convolutions, then dense layers; the last layer is linear.

    An image is `(channels, height, width)`; as a layer it stands in a row, channel by channel. So a dense layer reads
    the image of the last convolution flattened in that order. A weight matrix of a convolution has one row per
    channel above and one column per entry of a patch, `(units, channels · height · width)` of the patch.

    Parameters
    ----------
    weights
        `W_1, …, W_L`, with `W_l` of shape `(units, fan_in)`.
    convolutions
        How the first of them act; the other layers are dense.
    biases
        `b_1, …, b_L` of shapes `(units,)`, one number per channel of a convolution; with ``None`` for a layer
        without, or ``None`` for a network without biases.
    activation
        `φ` of the hidden layers: one for all, or a tuple with one for each.

    Raises
    ------
    ValueError
        Where consecutive layers do not fit, there is no dense layer at the end, or the arrays are not of one floating
        dtype.

    >>> network = ConvolutionalNetwork.initialise((1, 14, 14), channels=(8, 16), outputs=10, key=jax.random.key(0))
    >>> network.widths, [weight.shape for weight in network.weights]
    ((196, 392, 256, 10), [(8, 9), (16, 72), (10, 256)])
    """

    weights: Matrices = eqx.field(converter=matrices)
    convolutions: tuple[Convolution, ...] = eqx.field(converter=tuple)
    biases: Biases | None = eqx.field(converter=optional_vectors, default=None)
    activation: Activations = Relu()

    def __check_init__(self):
        if len(self.convolutions) >= len(self.weights):
            raise ValueError(
                f"The last layer is linear and dense: {len(self.convolutions)} convolutions need more weight matrices; "
                f"got {len(self.weights)}."
            )
        check_parameters(self)
        for layer, (below, above) in enumerate(pairwise(self.convolutions), start=1):
            image = (self.weights[layer - 1].shape[0], *below.positions)
            if image != above.image_shape:
                raise ValueError(
                    f"The convolution of layer {layer + 1} expects an image of shape {above.image_shape}, but layer "
                    f"{layer} gives {image}."
                )

    @classmethod
    def initialise(
        cls,
        image_shape: Sequence[int],
        *,
        channels: Sequence[int],
        outputs: int,
        hidden: Sequence[int] = (),
        kernel_shape: Sequence[int] = (3, 3),
        strides: Sequence[int] = (2, 2),
        padding: str | Sequence[Sequence[int]] = "SAME",
        activation: Activations = Relu(),
        use_bias: bool = False,
        hidden_gain: float = 2.0,
        output_gain: float = 1.0,
        dtype: jax.typing.DTypeLike = float,
        key: Key,
    ) -> "ConvolutionalNetwork":
        """Convolutions that are alike but for their channels, with Gaussian weights and biases zero.

        `W_l ~ N(0, hidden_gain / fan_in)`, and `N(0, output_gain / fan_in)` for the last layer.

        Parameters
        ----------
        image_shape
            `(channels, height, width)` of the inputs.
        channels
            Of the image above each convolution.
        outputs
            Of the last layer.
        hidden
            Widths of hidden layers between the convolutions and the outputs.
        kernel_shape, strides, padding
            Of every convolution, see [`Convolution`][].
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
            As [`Convolution`][] and [`weight_variances`][] do.
        """
        image, convolutions, shapes = tuple(image_shape), [], []
        for units in channels:
            convolution = Convolution(image, kernel_shape, strides, padding)
            convolutions.append(convolution)
            shapes.append((units, convolution.fan_in))
            image = (units, *convolution.positions)
        widths = (math.prod(image), *hidden, outputs)
        shapes += [(above, below) for below, above in pairwise(widths)]
        fans = (*(fan_in for _, fan_in in shapes), outputs)
        variances = weight_variances(fans, hidden_gain=hidden_gain, output_gain=output_gain)
        weights = gaussian_matrices(shapes, variances, dtype=dtype, key=key)
        biases = tuple(jnp.zeros(units, dtype) for units, _ in shapes) if use_bias else None
        return cls(weights, convolutions=convolutions, biases=biases, activation=activation)

    @property
    def connections(self) -> tuple[AbstractConnection, ...]:
        """The convolutions, and dense layers after them."""
        return (*self.convolutions, *[Dense()] * (len(self.weights) - len(self.convolutions)))

    @property
    def input_shape(self) -> tuple[int, ...]:
        """`(channels, height, width)`; `(n_0,)` where there is no convolution."""
        return self.convolutions[0].image_shape if self.convolutions else (self.weights[0].shape[1],)
