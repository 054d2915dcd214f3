"""Taking in a model of Equinox."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ._activations import AbstractActivation, Elementwise, Identity, Relu, Tanh
from ._connections import Convolution
from ._convolutional import ConvolutionalNetwork
from ._network import MLP

KNOWN = (
    (jax.nn.relu, Relu()),
    (jnp.tanh, Tanh()),
    (jax.nn.tanh, Tanh()),
    (jax.lax.tanh, Tanh()),
)
TAKEN = "Linear, Conv2d, Lambda, Identity, MLP and Sequential are taken in"
Steps = Iterator[tuple[str, Callable]]


def from_equinox(model: eqx.Module, *, image_shape: Sequence[int] | None = None) -> MLP | ConvolutionalNetwork:
    """The same network with explicit weights, for backward rules and tangent kernels.

    Taken in are ``eqx.nn.Sequential`` and ``eqx.nn.MLP`` of ``Linear``, ``Conv2d`` (any stride and zero padding) and
    activations in ``Lambda``: functions that act on each entry alone. ``jax.nn.relu``, ``jnp.tanh`` and activations of
    this library keep their own derivative; any other is differentiated. Between a convolution and a ``Linear`` stands
    a ``Lambda`` that flattens, such as ``Lambda(jnp.ravel)``. Layers without an activation in between stay linear.

    The outputs are those of ``jax.vmap(model)``. The weights of a convolution become a matrix of shape
    `(channels, fan_in)`, those of a ``Linear`` stay as they are. A model that is one ``Linear`` has no hidden layer. A
    scalar input or output becomes one column.

    Parameters
    ----------
    model
        Every array in it is a parameter of its own.
    image_shape
        `(channels, height, width)` of one input; needed where the model begins with a convolution.

    Returns
    -------
    MLP or ConvolutionalNetwork
        The second where there is a convolution.

    Raises
    ------
    ValueError
        Names the first layer that cannot be taken in, and what can be done: another kind of layer, a function that
        mixes entries, an array that is used twice, a value that is not finite, or an activation behind the last layer.

    >>> model = eqx.nn.MLP(2, 3, 8, depth=1, key=jax.random.key(0))
    >>> from_equinox(model).widths
    (2, 8, 3)
    """
    reader = _Reader(None if image_shape is None else tuple(image_shape))
    for name, layer in _steps(model, ""):
        reader.take(name, layer)
    return reader.network()


def _steps(model, name: str) -> Steps:
    if type(model) is eqx.nn.Sequential:
        for index, layer in enumerate(model.layers):
            yield from _steps(layer, f"{name}.layers[{index}]".removeprefix("."))
    elif type(model) is eqx.nn.MLP:
        yield from _perceptron(model, name)
    else:
        yield name or "the model", model


def _perceptron(model: eqx.nn.MLP, name: str) -> Steps:
    layers = list(model.layers)
    if model.scan:
        stacked = layers[1]
        layers[1:-1] = [
            jax.tree.map(lambda leaf, index=index: leaf[index] if eqx.is_array(leaf) else leaf, stacked)
            for index in range(model.depth - 1)
        ]
    for index, layer in enumerate(layers):
        last = index == len(layers) - 1
        yield f"{name}.layers[{index}]".removeprefix("."), layer
        if not last or model.depth:
            where = "final_activation" if last else "activation"
            function = model.final_activation if last else model.activation
            yield f"{name}.{where}".removeprefix("."), eqx.nn.Lambda(function)


class _Reader:
    """Layers as they come, with the shape of the signal between them."""

    def __init__(self, shape: tuple[int, ...] | None):
        if shape is not None and (len(shape) != 3 or min(shape) < 1):
            raise ValueError(f"image_shape is (channels, height, width), each at least 1; got {shape}.")
        self.shape = shape
        self.names, self.weights, self.biases = [], [], []
        self.convolutions: list[Convolution] = []
        self.activations: list[AbstractActivation | None] = []
        self.owners: dict[int, str] = {}

    def take(self, name: str, layer) -> None:
        if type(layer) is eqx.nn.Linear:
            self._linear(name, layer)
        elif type(layer) in (eqx.nn.Conv2d, eqx.nn.Conv) and layer.num_spatial_dims == 2:
            self._convolution(name, layer)
        elif type(layer) is eqx.nn.Lambda:
            self._function(name, layer.fn)
        elif type(layer) is not eqx.nn.Identity:
            remedy = "Replace pooling by strides." if "Pool" in type(layer).__name__ else "Leave it out or replace it."
            _refuse(name, f"is a {type(layer).__name__}; {TAKEN}. {remedy}")

    def network(self) -> MLP | ConvolutionalNetwork:
        if not self.weights:
            raise ValueError(f"The model has no layer with weights; {TAKEN}.")
        if self.activations[-1] is not None:
            _refuse(
                self.names[-1],
                "is the last one with weights and is followed by an activation; the last layer is linear here. Leave "
                "the activation to the loss.",
            )
        if len(self.convolutions) == len(self.weights):
            _refuse(self.names[-1], "is a convolution and the last layer. Flatten its image and add a Linear.")
        hidden = tuple(Identity() if activation is None else activation for activation in self.activations[:-1])
        alike = all(eqx.tree_equal(hidden[0], other) for other in hidden)
        activation = hidden[0] if hidden and alike else hidden or Relu()
        if not self.convolutions:
            return MLP(self.weights, self.biases, activation)
        return ConvolutionalNetwork(
            self.weights, convolutions=self.convolutions, biases=self.biases, activation=activation
        )

    def _linear(self, name: str, layer: eqx.nn.Linear) -> None:
        if self.shape is not None and len(self.shape) == 3:
            _refuse(
                name, f"is a Linear behind an image of shape {self.shape}. Flatten it first, with Lambda(jnp.ravel)."
            )
        units, fan_in = layer.weight.shape
        if self.shape not in (None, (fan_in,)):
            _refuse(name, f"is a Linear of {fan_in} inputs, but the layer below gives {self.shape[0]}.")
        self._add(name, layer, layer.weight)
        self.shape = (units,)

    def _convolution(self, name: str, layer: eqx.nn.Conv) -> None:
        if self.shape is None:
            _refuse(name, "is a convolution, and the size of its image is not known. Pass image_shape.")
        if len(self.shape) != 3 or self.shape[0] != layer.in_channels:
            _refuse(name, f"is a convolution of {layer.in_channels} channels, but gets a signal of shape {self.shape}.")
        if layer.groups != 1 or set(layer.dilation) != {1} or layer.padding_mode != "ZEROS":
            _refuse(
                name,
                f"is a convolution with groups {layer.groups}, dilation {layer.dilation} and padding mode "
                f"{layer.padding_mode}. Only groups 1, dilation 1 and ZEROS are taken in.",
            )
        convolution = Convolution(self.shape, layer.kernel_size, layer.stride, layer.padding)
        channels = layer.weight.shape[0]
        self._add(name, layer, layer.weight.reshape(channels, convolution.fan_in))
        self.convolutions.append(convolution)
        self.shape = (channels, *convolution.positions)

    def _add(self, name: str, layer, weight) -> None:
        for array in (layer.weight, layer.bias):
            if array is None:
                continue
            if id(array) in self.owners:
                _refuse(
                    name,
                    f"uses an array that {self.owners[id(array)]} uses too. Every layer has parameters of its own "
                    "here, and gradients and kernels would lack the terms between the two uses. Copy the array "
                    "(jnp.array) if they may part.",
                )
            self.owners[id(array)] = name
            if not isinstance(array, Tracer) and not np.isfinite(array).all():
                _refuse(name, "has a weight or a bias that is NaN or infinite. Look for what diverged before.")
        self.names.append(name)
        self.weights.append(weight)
        self.biases.append(None if layer.bias is None else layer.bias.reshape(weight.shape[0]))
        self.activations.append(None)

    def _function(self, name: str, function) -> None:
        if any(map(eqx.is_array, jax.tree.leaves(function))):
            _refuse(name, "is a function with parameters of its own, which have no place here. Fix them as constants.")
        if isinstance(function, AbstractActivation):
            activation = function
        else:
            activation = next((known for other, known in KNOWN if function is other), None)
        if activation is None:
            shape = self.shape if self.shape is not None else (7,)
            with jax.ensure_compile_time_eval():
                probe = jnp.linspace(-1.7, 2.3, math.prod(shape), dtype=self._dtype()).reshape(shape)
                kind = _kind(function, probe)
            if kind == "mixing":
                _refuse(
                    name,
                    f"is a function that neither acts on each entry alone nor flattens a signal of shape {shape}. "
                    "Only such functions are taken in.",
                )
            if kind == "flattening":
                self.shape = (math.prod(shape),)
            if kind != "activation":
                return
            activation = Elementwise(function)
        if isinstance(activation, Identity):
            return
        if not self.weights:
            _refuse(name, "is an activation before the first layer with weights. Apply it to the inputs.")
        if self.activations[-1] is not None:
            _refuse(name, "is a second activation behind one layer. Make one function of the two.")
        self.activations[-1] = activation

    def _dtype(self):
        return self.weights[-1].dtype if self.weights else jnp.zeros(()).dtype


def _kind(function, probe) -> str:
    """Whether a function leaves a signal as it is, flattens it, acts on its entries, or none of these."""
    try:
        value = function(probe)
        if value.shape == probe.shape and jnp.array_equal(value, probe):
            return "identity"
        if value.shape == (probe.size,) and jnp.array_equal(value, probe.ravel()):
            return "flattening"
        entries = jax.vmap(function)(probe.ravel()).reshape(probe.shape)
        close = value.shape == probe.shape and value.dtype == probe.dtype
        tolerance = 64 * jnp.finfo(probe.dtype).eps
        if close and jnp.allclose(value, entries, rtol=tolerance, atol=tolerance):
            return "activation"
    except Exception:  # whatever a function of the user raises on a single entry, it does not act on entries
        return "mixing"
    return "mixing"


def _refuse(name: str, what: str) -> NoReturn:
    raise ValueError(f"This model cannot be taken in: {name} {what}")
