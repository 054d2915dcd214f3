"""Models of Equinox, taken in: the same outputs, or a refusal that names the layer."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from equinox import nn

from jaxsolve.feedback import MLP, Backprop, ConvolutionalNetwork, Elementwise, Gelu, Identity, Relu, Tanh, from_equinox

KEYS = jax.random.split(jax.random.key(0), 6)
RELU, GELU = nn.Lambda(jax.nn.relu), nn.Lambda(Gelu())


def linear(below, above, index=0, **options):
    return nn.Linear(below, above, key=KEYS[index], **options)


def convolutional(**options):
    return nn.Sequential(
        [
            nn.Conv2d(2, 3, 3, key=KEYS[0], **options),
            RELU,
            nn.Sequential([nn.Conv2d(3, 4, (2, 3), stride=(1, 2), padding=((1, 0), (0, 2)), key=KEYS[1]), RELU]),
            nn.Lambda(lambda image: image.reshape(-1)),
            nn.Identity(),
            linear(_flat(options), 3, 2, use_bias=False),
        ]
    )


def _flat(options):
    head = nn.Sequential(
        [
            nn.Conv2d(2, 3, 3, key=KEYS[0], **options),
            nn.Conv2d(3, 4, (2, 3), stride=(1, 2), padding=((1, 0), (0, 2)), key=KEYS[1]),
        ]
    )
    return jax.eval_shape(head, jax.ShapeDtypeStruct((2, 7, 6), jnp.float64)).size


MODELS = {
    "one linear": linear(5, 3),
    "sequential": nn.Sequential([linear(5, 4), nn.Lambda(jnp.tanh), linear(4, 3, 1, use_bias=False)]),
    "no activation": nn.Sequential([linear(5, 4), linear(4, 3, 1)]),
    "several activations": nn.Sequential(
        [
            linear(5, 4),
            RELU,
            linear(4, 4, 1),
            nn.Lambda(jax.nn.gelu),
            linear(4, 4, 2),
            nn.Lambda(Gelu()),
            linear(4, 3, 3),
        ]
    ),
    "perceptron": nn.MLP(5, 3, 6, depth=2, use_final_bias=False, key=KEYS[0]),
    "scanned perceptron": nn.MLP(5, 3, 6, depth=3, activation=jnp.tanh, scan=True, key=KEYS[0]),
    "shallow perceptron": nn.MLP(5, 3, 6, depth=0, key=KEYS[0]),
}


@eqx.filter_jit
def outputs(model, inputs):
    return jax.vmap(model)(inputs)


def assert_same_outputs(network, model, inputs):
    expected = outputs(model, inputs)
    measured = eqx.filter_jit(lambda network: network(inputs))(network)
    np.testing.assert_allclose(measured, expected, rtol=0, atol=1e-15 * float(jnp.abs(expected).max()))


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_the_model(name):
    model, inputs = MODELS[name], jax.random.normal(KEYS[5], (4, 5))
    network = from_equinox(model)
    assert isinstance(network, MLP)
    assert_same_outputs(network, model, inputs)


@pytest.mark.parametrize("options", [{"stride": 2, "padding": "SAME"}, {"padding": 1, "use_bias": False}, {}])
def test_convolutions_are_those_of_the_model(options):
    model, images = convolutional(**options), jax.random.normal(KEYS[5], (3, 2, 7, 6))
    network = from_equinox(model, image_shape=(2, 7, 6))
    assert isinstance(network, ConvolutionalNetwork)
    assert_same_outputs(network, model, images)
    assert (network.biases[0] is None) == (options.get("use_bias") is False)
    assert network.biases[2] is None


def test_gradients_are_those_of_the_model():
    model, images = convolutional(stride=2, padding="SAME"), jax.random.normal(KEYS[5], (3, 2, 7, 6))
    network = from_equinox(model, image_shape=(2, 7, 6))
    cotangent = jnp.cos(jnp.arange(9.0)).reshape(3, 3)

    @eqx.filter_jit
    def both(model, network):
        exact = eqx.filter_grad(lambda model: jnp.sum(cotangent * jax.vmap(model)(images)))(model)
        return exact, Backprop().gradients(network, network.forward(images), cotangent)

    exact, measured = both(model, network)
    layers = [exact[0], exact[2][0], exact[5]]
    for layer, weight, bias in zip(layers, measured.weights, measured.biases, strict=True):
        np.testing.assert_allclose(weight, layer.weight.reshape(weight.shape), rtol=0, atol=1e-13)
        if bias is not None:
            np.testing.assert_allclose(bias, layer.bias.ravel(), rtol=0, atol=1e-13)


def test_activations_are_recognised():
    network = from_equinox(MODELS["several activations"])
    assert network.activation[0] == Relu()
    assert network.activation[1] == Elementwise(jax.nn.gelu)
    assert network.activation[2] == Gelu()
    assert from_equinox(MODELS["scanned perceptron"]).activation == Tanh()
    assert from_equinox(MODELS["no activation"]).activation == Identity()
    one, other = (nn.Lambda(lambda value, factor=factor: factor * value) for factor in (2.0, 3.0))
    network = from_equinox(nn.Sequential([linear(5, 4), one, linear(4, 4, 1), other, linear(4, 3, 2)]))
    assert network.activation[0] != network.activation[1]


def test_a_model_is_taken_in_under_transformations():
    model, inputs = MODELS["perceptron"], jnp.ones((2, 5))
    measured = eqx.filter_jit(lambda model: from_equinox(model)(inputs))(model)
    np.testing.assert_allclose(measured, outputs(model, inputs), rtol=1e-14)


SHARED = linear(4, 4, 1)
TIED = eqx.tree_at(lambda layer: layer.weight, linear(4, 4, 2), SHARED.weight)
IMAGE = nn.Conv2d(2, 3, 3, key=KEYS[0])
BROKEN = eqx.tree_at(lambda layer: layer.weight, linear(4, 3, 3), jnp.full((3, 4), jnp.nan))
REFUSED = [
    ([linear(5, 4), nn.LayerNorm(4), linear(4, 3)], r"layers\[1\] is a LayerNorm.*Linear, Conv2d"),
    ([linear(5, 4), nn.Sequential([RELU, nn.Dropout()]), linear(4, 3)], r"layers\[1\].layers\[1\] is a Dropout"),
    ([IMAGE, nn.MaxPool2d(2), linear(4, 3)], r"layers\[1\] is a MaxPool2d.*by strides"),
    ([linear(5, 4), nn.PReLU(), linear(4, 3)], r"layers\[1\] is a PReLU"),
    ([linear(5, 4), nn.Lambda(nn.PReLU()), linear(4, 3)], r"layers\[1\] is a function with parameters"),
    ([linear(5, 4), nn.Lambda(jax.nn.softmax), linear(4, 3)], r"layers\[1\] is a function that neither.*\(4,\)"),
    ([linear(5, 4), nn.Lambda(lambda value: value[::-1]), linear(4, 3)], r"layers\[1\] is a function that neither"),
    ([linear(5, 4), RELU, nn.Lambda(jnp.tanh), linear(4, 3)], r"layers\[2\] is a second activation"),
    ([RELU, linear(5, 4)], r"layers\[0\] is an activation before"),
    ([linear(5, 4), RELU], r"layers\[0\] is the last one.*to the loss"),
    ([linear(5, 4), linear(3, 3)], r"layers\[1\] is a Linear of 3 inputs, but the layer below gives 4"),
    ([linear(5, 4), SHARED, RELU, SHARED, linear(4, 3)], r"layers\[3\] uses an array that layers\[1\] uses too"),
    ([linear(5, 4), SHARED, RELU, TIED, linear(4, 3)], r"layers\[3\] uses an array that layers\[1\] uses too"),
    ([linear(5, 4), RELU, BROKEN], r"layers\[2\] has a weight or a bias that is NaN"),
    ([IMAGE, RELU, linear(60, 3)], r"layers\[2\] is a Linear behind an image of shape \(3, 5, 4\)"),
    ([IMAGE], r"layers\[0\] is a convolution and the last layer"),
    ([nn.Conv2d(1, 3, 3, key=KEYS[0])], r"layers\[0\] is a convolution of 1 channels.*\(2, 7, 6\)"),
    ([nn.Conv2d(2, 2, 3, groups=2, key=KEYS[0])], r"groups 2"),
    ([nn.Conv2d(2, 2, 3, dilation=2, key=KEYS[0])], r"dilation \(2, 2\)"),
    ([nn.Conv2d(2, 2, 3, padding_mode="CIRCULAR", padding=1, key=KEYS[0])], "padding mode CIRCULAR"),
    ([], "no layer with weights"),
]


@pytest.mark.parametrize(("layers", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_taken_in_is_named(unchecked, layers, message):
    image = any(isinstance(layer, nn.Conv) for layer in layers)
    with pytest.raises(ValueError, match=message):
        from_equinox(nn.Sequential(layers), image_shape=(2, 7, 6) if image else None)


def test_other_refusals(unchecked):
    with pytest.raises(ValueError, match="Pass image_shape"):
        from_equinox(nn.Sequential([IMAGE, RELU]))
    with pytest.raises(ValueError, match=r"got \(2, 7\)"):
        from_equinox(nn.Sequential([IMAGE]), image_shape=(2, 7))
    with pytest.raises(ValueError, match="followed by an activation"):
        from_equinox(nn.MLP(5, 3, 4, depth=1, final_activation=jnp.tanh, key=KEYS[0]))
