"""Networks, activations and what the forward pass keeps."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.feedback import MLP, Elementwise, Gelu, Identity, Relu, Tanh, weight_variances

ACTIVATIONS = [Relu(), Tanh(), Gelu(), Identity(), Elementwise(jnp.sin)]
WIDTHS = (5, 7, 4, 3)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda activation: type(activation).__name__)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_the_derivative_is_the_derivative(activation, dtype):
    points = jnp.concatenate([jnp.linspace(-6, 6, 101), jnp.array([0.0, -1e-30, 1e-30, 40.0, -40.0])]).astype(dtype)
    derivative = activation.derivative(points)
    assert derivative.dtype == dtype
    expected = jax.vmap(jax.grad(activation))(points)
    np.testing.assert_allclose(derivative, expected, rtol=8 * jnp.finfo(dtype).eps, atol=4 * jnp.finfo(dtype).eps)


def test_the_rectifier_is_closed_at_zero():
    assert Relu().derivative(jnp.zeros(1)) == 0
    assert jax.grad(Relu())(0.0) == 0


@pytest.mark.parametrize("activation", ACTIVATIONS[:3], ids=lambda activation: type(activation).__name__)
def test_what_is_not_a_number_stays_so(activation):
    assert jnp.isnan(activation(jnp.array([jnp.nan]))).all()
    assert jnp.isnan(activation.derivative(jnp.array([jnp.nan]))).all()


def test_each_layer_may_have_its_own_activation_and_bias():
    weights = [np.ones((4, 2)), np.ones((3, 4)), np.ones((1, 3))]
    network = MLP(weights, [None, np.full(3, 0.5), None], (Relu(), Tanh()))
    outputs = network(np.array([[1.0, -0.8], [1.0, -3.0]]))
    np.testing.assert_allclose(outputs, 3 * np.tanh([[4 * 0.2 + 0.5], [0.5]]), rtol=1e-14)
    assert MLP(weights, [None] * 3).biases is None


def test_the_gaussian_unit_is_the_exact_one():
    points = jnp.linspace(-8, 8, 41)
    np.testing.assert_allclose(Gelu()(points), jax.nn.gelu(points, approximate=False), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("use_bias", [False, True])
def test_the_forward_pass_example_by_example(use_bias):
    generator = np.random.default_rng(0)
    weights = [generator.standard_normal(shape).T for shape in pairwise(WIDTHS)]
    network = MLP(weights, [np.linspace(-1, 1, width) for width in WIDTHS[1:]] if use_bias else None, Tanh())
    inputs = generator.standard_normal((6, 5))
    forward = network.forward(inputs)
    for example, row in enumerate(inputs):
        hidden = row
        for layer, weight in enumerate(network.weights):
            np.testing.assert_allclose(forward.activations[layer][example], hidden, rtol=1e-13)
            shift = network.biases[layer] if network.biases is not None else 0
            values = np.array([entries @ hidden for entries in np.asarray(weight)]) + shift
            if layer < network.depth:
                hidden = np.tanh(values)
                np.testing.assert_allclose(forward.gates[layer][example], 1 - hidden**2, rtol=0, atol=1e-14)
        np.testing.assert_allclose(forward.outputs[example], values, rtol=1e-12)
    assert jnp.array_equal(network(inputs), forward.outputs)


def test_initial_weights_have_the_declared_variances():
    widths = (200, 300, 100, 400)
    network = MLP.initialise(widths, hidden_gain=3.0, output_gain=0.5, use_bias=True, key=jax.random.key(1))
    variances = weight_variances(widths, hidden_gain=3.0, output_gain=0.5)
    assert variances == (3 / 200, 3 / 300, 0.5 / 100)
    assert network.widths == widths
    assert network.depth == 2
    for weight, variance in zip(network.weights, variances, strict=True):
        scaled = np.asarray(weight) ** 2 / variance
        assert abs(scaled.mean() - 1) < 5 * np.sqrt(2 / scaled.size)
        assert abs(np.asarray(weight).mean()) < 5 * np.sqrt(variance / scaled.size)
    assert not any(bias.any() for bias in network.biases)
    correlation = np.corrcoef(np.asarray(network.weights[0]).ravel()[:30000], np.asarray(network.weights[1]).ravel())
    assert abs(correlation[0, 1]) < 5 / np.sqrt(30000)


def test_a_network_is_a_pytree_of_its_arrays():
    network = MLP.initialise(WIDTHS, dtype=jnp.float32, use_bias=True, key=jax.random.key(0))
    assert len(jax.tree.leaves(network)) == 6
    assert network.dtype == jnp.float32
    traces = 0

    @jax.jit
    def outputs(network, inputs):
        nonlocal traces
        traces += 1
        return network(inputs)

    inputs = jnp.ones((2, 5), jnp.float32)
    for scale in (1.0, 2.0):
        outputs(jax.tree.map(lambda leaf, scale=scale: scale * leaf, network), inputs)
    assert traces == 1
    ensemble = jax.vmap(lambda key: MLP.initialise(WIDTHS, key=key))(jax.random.split(jax.random.key(0), 4))
    assert jax.vmap(lambda member: member(jnp.ones((2, 5))))(ensemble).shape == (4, 2, 3)


def test_integers_are_converted_and_other_floats_refused(unchecked):
    network = MLP([np.ones((3, 5))])
    integers = np.arange(10).reshape(2, 5)
    assert jnp.array_equal(network(integers), network(integers.astype(float)))
    with pytest.raises(ValueError, match="float64, the inputs float32"):
        network(jnp.ones((2, 5), jnp.float32))


def test_misfits_are_told_by_layer(unchecked):
    with pytest.raises(ValueError, match=r"layer 2 have shape \(3, 5\), but layer 1 has 4 units"):
        MLP([np.ones((4, 2)), np.ones((3, 5))])
    with pytest.raises(ValueError, match=r"of shapes \[\(4,\), \(3,\)\]; got \[\(4,\), \(4,\)\]"):
        MLP([np.ones((4, 2)), np.ones((3, 4))], [np.ones(4), np.ones(4)])
    with pytest.raises(ValueError, match="float32"):
        MLP([np.ones((4, 2)), np.ones((3, 4), np.float32)])
    with pytest.raises(ValueError, match="each of 1; got 2"):
        MLP([np.ones((4, 2)), np.ones((3, 4))], activation=(Relu(), Tanh()))
    with pytest.raises(ValueError, match="at least one matrix"):
        MLP([])
    with pytest.raises(ValueError, match=r"\(examples, 2\).*got \(1, 3\)"):
        MLP([np.ones((4, 2))])(np.ones((1, 3)))
    for widths in ((3,), (3, 0, 2)):
        with pytest.raises(ValueError, match="each at least 1"):
            MLP.initialise(widths, key=jax.random.key(0))
    with pytest.raises(ValueError, match="not negative"):
        weight_variances((2, 2), output_gain=-1.0)
