"""Convolutions as patches and products: against XLA's own convolution, as transposes, and per example."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.feedback import Backprop, Convolution, ConvolutionalNetwork, DirectFeedbackAlignment, Relu, Tanh

GEOMETRIES = [
    Convolution((2, 6, 5), (3, 3), (2, 2)),
    Convolution((1, 7, 4), (2, 3), (1, 3), "SAME_LOWER"),
    Convolution((3, 5, 5), (3, 2), (2, 1), "VALID"),
    Convolution((2, 2, 3), (4, 5), (3, 1), ((3, 1), (0, 4))),
    Convolution((2, 4, 4), (1, 1), (3, 3)),
]


def problem(*, use_bias=False, hidden=(), activation=Relu(), examples=4, outputs=3, dtype=jnp.float64):
    network = ConvolutionalNetwork.initialise(
        (2, 6, 5), channels=(3, 4), outputs=outputs, hidden=hidden, activation=activation, key=jax.random.key(0)
    )
    generator = np.random.default_rng(1)
    biases = [generator.standard_normal(weight.shape[0]) for weight in network.weights] if use_bias else None
    network = ConvolutionalNetwork(
        network.weights, convolutions=network.convolutions, biases=biases, activation=activation
    )
    inputs = jnp.asarray(generator.standard_normal((examples, 60)), dtype)
    return jax.tree.map(lambda leaf: leaf.astype(dtype), network), inputs


def test_same_padding_is_that_of_xla():
    assert Convolution((1, 14, 14), (3, 3), (2, 2)).padding == ((0, 1), (0, 1))
    assert Convolution((8, 7, 7), (3, 3), (2, 2)).padding == ((1, 1), (1, 1))
    assert Convolution((8, 7, 7), (3, 3), (2, 2)).positions == (4, 4)


@pytest.mark.parametrize("convolution", GEOMETRIES, ids=lambda convolution: str(convolution.kernel_shape))
def test_a_convolution_is_the_one_of_xla(convolution):
    generator = np.random.default_rng(0)
    channels = convolution.image_shape[0]
    hidden = jnp.asarray(generator.standard_normal((3, math.prod(convolution.image_shape))))
    kernel = jnp.asarray(generator.standard_normal((4, channels, *convolution.kernel_shape)))
    bias = jnp.asarray(generator.standard_normal(4))
    expected = jax.lax.conv_general_dilated(
        hidden.reshape(3, *convolution.image_shape), kernel, convolution.strides, convolution.padding
    )
    weight = kernel.reshape(4, -1)
    measured = eqx.filter_jit(convolution.apply)(hidden, weight, bias)
    assert measured.shape[1] == convolution.widths(weight)[1]
    np.testing.assert_allclose(measured.reshape(expected.shape), expected + bias[None, :, None, None], atol=1e-14)


@pytest.mark.parametrize("convolution", GEOMETRIES, ids=lambda convolution: str(convolution.kernel_shape))
def test_the_way_back_is_the_transpose(convolution):
    """`⟨e, W h⟩ = ⟨W^T e, h⟩ = ⟨g, W⟩` with the gradient `g` of `W`."""
    generator = np.random.default_rng(0)
    hidden = jnp.asarray(generator.standard_normal((3, math.prod(convolution.image_shape))))
    weight = jnp.asarray(generator.standard_normal((4, convolution.fan_in)))
    units = convolution.widths(weight)[1]
    error = jnp.asarray(generator.standard_normal((3, units)))

    @jax.jit
    def products(hidden, weight, error):
        gradient, shift = convolution.gradient(hidden, error)
        return (
            jnp.sum(convolution.apply(hidden, weight, None) * error),
            jnp.sum(convolution.send_back(error, weight.T) * hidden),
            jnp.sum(gradient * weight),
            shift,
        )

    product, back, own, shift = products(hidden, weight, error)
    assert float(back) == pytest.approx(float(product), rel=1e-12)
    assert float(own) == pytest.approx(float(product), rel=1e-12)
    np.testing.assert_allclose(shift, error.reshape(3, 4, units // 4).sum(axis=(0, 2)), rtol=1e-13)


def jacobian(network, inputs):
    rows = jax.jit(jax.jacrev(lambda network: network(inputs)))(network)
    return [leaf.reshape(*leaf.shape[:2], -1) for leaf in jax.tree.leaves(rows)]


@pytest.mark.parametrize("use_bias", [False, True])
def test_tangent_factors_are_those_of_the_jacobian(use_bias):
    """The sum over layers of products of factors is `J J^T`, weight sharing included."""
    network, inputs = problem(use_bias=use_bias, hidden=(5,), activation=Tanh())

    @jax.jit
    def factors(network, inputs):
        forward = network.forward(inputs)
        one_hot = jnp.eye(3)[None, :, :]
        return network.tangent_factors(forward, Backprop().deltas(network, forward, one_hot))

    total = np.zeros((4, 3, 4, 3))
    for factor in factors(network, inputs):
        errors = np.broadcast_to(np.eye(3), (4, 3, 3)) if factor.errors is None else factor.errors
        gram = np.ones((4, 4)) if factor.hidden is None else factor.hidden @ factor.hidden.T
        total += np.asarray(gram)[:, None, :, None] * np.einsum("ncu,mdu->ncmd", errors, errors)
    expected = sum(np.einsum("ncp,mdp->ncmd", leaf, leaf) for leaf in jacobian(network, inputs))
    np.testing.assert_allclose(total, expected, rtol=0, atol=1e-14 * np.abs(expected).max())


@jax.jit
def outputs(network, inputs):
    return network(inputs)


def test_images_and_rows_are_the_same_inputs():
    network, inputs = problem()
    assert network.input_shape == (2, 6, 5)
    assert network.widths == (60, 27, 16, 3)
    images = np.asfortranarray(np.asarray(inputs).reshape(4, 2, 6, 5)[::-1])[::-1]
    assert jnp.array_equal(outputs(network, images), outputs(network, inputs))
    integers = np.arange(120).reshape(2, 60)
    assert jnp.array_equal(outputs(network, integers), outputs(network, integers.astype(float)))


@pytest.mark.parametrize("examples", [0, 1])
def test_few_examples_and_one_output(examples):
    network, inputs = problem(examples=examples, outputs=1, use_bias=True)
    rule = DirectFeedbackAlignment.sample(network, key=jax.random.key(0))

    @jax.jit
    def both(network, inputs):
        forward = network.forward(inputs)
        deltas = rule.deltas(network, forward, jnp.ones((1, 1, 1)))
        return rule.gradients(network, forward, forward.outputs), network.tangent_factors(forward, deltas)

    updates, factors = both(network, inputs)
    assert [leaf.shape for leaf in jax.tree.leaves(updates)] == [leaf.shape for leaf in jax.tree.leaves(network)]
    assert [factor.errors.shape for factor in factors[:-1]] == [(examples, 1, 57), (examples, 1, 112)]
    if not examples:
        assert not any(leaf.any() for leaf in jax.tree.leaves(updates))


def test_initial_weights_have_the_declared_variances():
    network = ConvolutionalNetwork.initialise(
        (8, 6, 6), channels=(300,), outputs=90, hidden_gain=3.0, output_gain=0.5, use_bias=True, key=jax.random.key(1)
    )
    for weight, variance in zip(network.weights, (3 / 72, 0.5 / 2700), strict=True):
        scaled = np.asarray(weight) ** 2 / variance
        assert abs(scaled.mean() - 1) < 5 * np.sqrt(2 / scaled.size)
    assert not any(bias.any() for bias in network.biases)


def test_vectorised_weights_need_no_convolution():
    network, inputs = problem()
    ensemble = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), network)
    together = jax.jit(jax.vmap(lambda member: member(inputs)))(ensemble)
    np.testing.assert_allclose(together[1], 8 * outputs(network, inputs), rtol=1e-13)
    program = str(jax.make_jaxpr(jax.vmap(lambda member: member(inputs)))(ensemble))
    assert "conv_general" not in program
    assert "dot_general" in program


def test_misfits_are_told(unchecked):
    network, inputs = problem()
    with pytest.raises(ValueError, match=r"\(examples, 60\) or \(examples, 2, 6, 5\).*got \(4, 2, 5, 6\)"):
        network(inputs.reshape(4, 2, 5, 6))
    with pytest.raises(ValueError, match="float64, the inputs float32"):
        network(inputs.astype(jnp.float32))
    with pytest.raises(ValueError, match=r"18 columns; got shape \(4, 17\)"):
        ConvolutionalNetwork([np.ones((4, 17)), np.ones((1, 36))], convolutions=[GEOMETRIES[0]])
    with pytest.raises(ValueError, match="36 units, not 35"):
        ConvolutionalNetwork([np.ones((4, 18)), np.ones((1, 35))], convolutions=[GEOMETRIES[0]])
    with pytest.raises(ValueError, match="last layer is linear and dense"):
        ConvolutionalNetwork([np.ones((4, 18))], convolutions=[GEOMETRIES[0]])
    turned = Convolution((4, 1, 9), (1, 1))
    with pytest.raises(ValueError, match=r"layer 2 expects an image of shape \(4, 1, 9\).*gives \(4, 3, 3\)"):
        ConvolutionalNetwork([np.ones((4, 18)), np.ones((1, 4)), np.ones((1, 9))], convolutions=[GEOMETRIES[0], turned])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((6, 5), (3, 3)), "at least 1"),
        (((1, 6, 5), (3, 0)), "at least 1"),
        (((1, 6, 5), (3, 3), (2, 2), "FULL"), "'SAME_LOWER'"),
        (((1, 6, 5), (3, 3), (1, 1), ((-1, 0), (0, 0))), "zeros before and after"),
        (((1, 2, 2), (3, 3), (1, 1), "VALID"), "No patch"),
    ],
)
def test_geometries_that_do_not_exist_are_refused(unchecked, arguments, message):
    with pytest.raises(ValueError, match=message):
        Convolution(*arguments)
