"""The initial erosion where weights are shared over positions: against gradients of XLA's own convolution."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve._results import RESULTS
from jaxsolve.feedback import (
    Backprop,
    ConvolutionalNetwork,
    DirectFeedbackAlignment,
    FeedbackAlignment,
    SignSymmetry,
    Tanh,
    erosion_draws,
    erosion_form,
    from_equinox,
    initial_erosion,
)
from jaxsolve.tangent import kernel

KEY = jax.random.key(3)
IMAGE = (2, 6, 5)


def problem(*, use_bias=False, dtype="float64"):
    network = ConvolutionalNetwork.initialise(
        IMAGE, channels=(3, 4), outputs=3, hidden=(5,), activation=Tanh(), dtype=dtype, key=jax.random.key(0)
    )
    generator = np.random.default_rng(1)
    if use_bias:
        biases = [jnp.asarray(generator.standard_normal(len(weight)), dtype) for weight in network.weights]
        biases[1] = None
        network = ConvolutionalNetwork(network.weights, network.convolutions, biases, Tanh())
    inputs, labels = generator.standard_normal((7, *IMAGE)), generator.standard_normal((7, 3))
    return network, jnp.asarray(inputs, dtype), jnp.asarray(labels, dtype)


def linear(network, layer, matrix, signal):
    """The map of one layer with another matrix, by XLA's own convolution."""
    if layer >= len(network.convolutions):
        return signal.reshape(len(signal), -1) @ matrix.T
    convolution = network.convolutions[layer]
    kernel_shape = (len(matrix), convolution.image_shape[0], *convolution.kernel_shape)
    return jax.lax.conv_general_dilated(
        signal, matrix.reshape(kernel_shape), convolution.strides, convolution.padding, precision="highest"
    )


def outputs_with_feedback(network, inputs, feedback):
    """The outputs, with derivatives by the signals that go through the feedback and exact ones by the parameters."""
    still, signal = jax.lax.stop_gradient, inputs
    for layer, weight in enumerate(network.weights):
        own = linear(network, layer, weight, still(signal))
        if layer:
            sent = linear(network, layer, feedback[layer - 1].T, signal)
            own = own + sent - still(sent)
        if network.biases is not None and network.biases[layer] is not None:
            own = own + network.biases[layer].reshape(1, -1, *[1] * (own.ndim - 2))
        signal = jnp.tanh(own) if layer < len(network.weights) - 1 else own
    return signal


def squared(network):
    return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(network))


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("rule", [FeedbackAlignment, SignSymmetry])
def test_the_erosion_is_that_of_automatic_differentiation(rule, use_bias):
    network, inputs, labels = problem(use_bias=use_bias)
    rule = rule.sample(network, key=KEY)

    @jax.jit
    def gradients(network, feedback):
        def loss(network, feedback):
            return jnp.mean(jnp.sum(jnp.cosh(outputs_with_feedback(network, inputs, feedback) - labels), axis=1))

        exact = jax.grad(loss)(network, [weight.T for weight in network.weights[1:]])
        return exact, jax.grad(loss)(network, feedback)

    exact, other = gradients(network, rule.backward_matrices(network))
    cotangent = jnp.sinh(eqx.filter_jit(network)(inputs) - labels) / len(inputs)
    found = initial_erosion(network, inputs, cotangent, rule)
    products = sum(jax.tree.leaves(jax.tree.map(lambda one, two: jnp.sum(one * two), exact, other)))
    np.testing.assert_allclose(found.speed, products, rtol=1e-12)
    np.testing.assert_allclose(found.backprop_speed, squared(exact), rtol=1e-12)
    np.testing.assert_allclose(found.erosion, 1 - products / squared(exact), rtol=1e-12)
    last = squared((exact.weights[-1], exact.biases and exact.biases[-1]))
    np.testing.assert_allclose(found.output_share, last / squared(exact), rtol=1e-12)
    assert abs(float(found.erosion)) > 0.05


def test_a_model_of_equinox_has_the_quadratic_forms_of_its_kernel():
    keys = jax.random.split(KEY, 3)
    model = eqx.nn.Sequential(
        [
            eqx.nn.Conv2d(2, 3, 3, stride=2, padding=1, key=keys[0]),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.Lambda(jnp.ravel),
            eqx.nn.Linear(27, 3, key=keys[1]),
        ]
    )
    network, inputs = from_equinox(model, image_shape=IMAGE), problem()[1]
    cotangent = jax.vmap(model)(inputs) - problem()[2]
    rule = DirectFeedbackAlignment.sample(network, key=keys[2])
    found = initial_erosion(network, inputs, cotangent, rule)
    error = cotangent.ravel()
    exact, other = (error @ kernel(network, inputs, one) @ error for one in (Backprop(), rule))
    np.testing.assert_allclose([found.backprop_speed, found.speed], [exact, other], rtol=1e-12)
    gradient = eqx.filter_grad(lambda model: jnp.sum(cotangent * jax.vmap(model)(inputs)))(model)
    np.testing.assert_allclose(found.output_share * found.backprop_speed, squared(gradient[3]), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transposed_kernels_lose_nothing(dtype):
    network, inputs, cotangent = problem(dtype=dtype)
    found = initial_erosion(network, inputs, cotangent, FeedbackAlignment([weight.T for weight in network.weights[1:]]))
    assert {leaf.dtype.name for leaf in jax.tree.leaves(eqx.filter(found, eqx.is_inexact_array))} == {dtype}
    assert float(found.erosion) == 0
    rows = initial_erosion(network, inputs.reshape(7, -1), cotangent, SignSymmetry.uniform(network))
    assert abs(float(rows.erosion)) > 0.01


def test_a_residual_of_zero_is_told():
    network, inputs, cotangent = problem()
    rule = FeedbackAlignment.sample(network, key=KEY)
    found = initial_erosion(network, inputs, 0 * cotangent, rule, throw=False)
    assert bool(found.result == RESULTS.no_speed)
    assert np.isnan([found.erosion, found.output_share]).all()
    with pytest.raises(ValueError, match="gradients of backpropagation are zero"):
        initial_erosion(network, inputs, 0 * cotangent, rule)


def test_what_holds_for_dense_layers_alone_is_refused(unchecked):
    network, inputs, cotangent = problem()
    rule = FeedbackAlignment.sample(network, key=KEY)
    with pytest.raises(ValueError, match=r"layer 1 is a Convolution. Use initial_erosion"):
        erosion_form(network, inputs, cotangent)
    with pytest.raises(ValueError, match=r"layer 1 is a Convolution. Use initial_erosion"):
        erosion_draws(network, inputs, cotangent, count=2, key=KEY)
    with pytest.raises(ValueError, match=r"at least one example; got none, inputs of shape \(0, 2, 6, 5\)"):
        initial_erosion(network, inputs[:0], cotangent[:0], rule)
    with pytest.raises(ValueError, match=r"or \(examples, 2, 6, 5\).*got \(7, 59\)"):
        initial_erosion(network, inputs.reshape(7, 60)[:, 1:], cotangent, rule)
