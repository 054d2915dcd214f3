"""Kernels at infinite width: against another library, arc-cosine integrals, quadrature, and wide networks."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from jaxsolve.curves import predict_gradient_flow
from jaxsolve.feedback import MLP, Backprop, Erf, Gelu, Identity, Relu, Tanh
from jaxsolve.tangent import infinite_width_kernels, kernel

ACTIVATIONS = {"relu": Relu(), "erf": Erf(), "tanh": Tanh(), "gelu": Gelu(), "identity": Identity()}
INPUTS = jnp.asarray(np.random.default_rng(5).standard_normal((4, 5)))

VALUES = dict(np.load(Path(__file__).with_name("neural_tangents_values.npz")))
"""Of neural-tangents 0.6.5; the script beside the file tells how."""

NETWORKS = {"relu_1": (Relu(), 1, None), "relu_3_bias": (Relu(), 3, 0.3), "erf_2": (Erf(), 2, None)}
NETWORKS |= {"erf_2_bias": (Erf(), 2, 0.3)}


def of_peer(name, others=None, inputs="train"):
    activation, depth, bias_variance = NETWORKS[name]
    second = None if others is None else VALUES[others]
    options = {"depth": depth, "activation": activation, "hidden_gain": 1.7, "output_gain": 0.6}
    return infinite_width_kernels(VALUES[inputs], second, bias_variance=bias_variance, **options)


@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_are_those_of_neural_tangents(name):
    """Its diagonal for the rectifier is off by 1e-8: it takes the arc cosine of a rounded 1."""
    whole, crossed = of_peer(name), of_peer(name, "train", "test")
    tolerance = 1e-7 if "relu" in name else 1e-13
    np.testing.assert_allclose(whole.covariance, VALUES[f"{name}_nngp"], rtol=1e-12)
    np.testing.assert_allclose(crossed.covariance, VALUES[f"{name}_nngp_cross"], rtol=1e-12)
    np.testing.assert_allclose(whole.tangent, VALUES[f"{name}_ntk"], rtol=tolerance)
    np.testing.assert_allclose(crossed.tangent, VALUES[f"{name}_ntk_cross"], rtol=1e-12)


def test_the_empirical_kernel_is_that_of_neural_tangents():
    network = MLP([VALUES[f"weights_{layer}"] for layer in (1, 2, 3)], activation=Tanh())
    theirs = VALUES["empirical"].transpose(0, 2, 1, 3).reshape(12, 12)
    measured = kernel(network, VALUES["train"], Backprop())
    np.testing.assert_allclose(measured, theirs, rtol=1e-12, atol=1e-12 * abs(theirs).max())


@pytest.mark.parametrize("symmetric", [True, False])
def test_predictions_are_those_of_neural_tangents(symmetric):
    """Its loss is half the mean over all entries, two columns of six."""
    start, targets = VALUES["start"], VALUES["targets"]
    flow = predict_gradient_flow(
        jnp.asarray(VALUES["relu_3_bias_ntk"]),
        jnp.asarray(start - targets),
        learning_rate=jnp.array(0.8),
        loss_divisor=targets.size,
        times=jnp.array([0.0, 1.0, 30.0, jnp.inf]),
        cross_kernel=jnp.asarray(VALUES["relu_3_bias_ntk_cross"]),
        test_outputs=jnp.asarray(VALUES["test_start"]),
        symmetric=symmetric,
    )
    np.testing.assert_allclose(flow.residual + targets[None], VALUES["predicted_train"], atol=1e-11)
    np.testing.assert_allclose(flow.test_outputs, VALUES["predicted_test"], atol=1e-11)


def test_one_rectified_layer_is_the_arc_cosine_kernel():
    """Cho and Saul's integral over directions of the weights, in the plane of two inputs."""
    first, second = np.array([1.0, 0.0, 0.0]), np.array([np.cos(2.0), np.sin(2.0), 0.0]) * 1.5

    def together(angle):
        return np.cos(angle) * 1.5 * np.cos(angle - 2.0)

    inside = (2.0 - np.pi / 2, np.pi / 2)
    product = 2 * scipy.integrate.quad(together, *inside)[0] / (2 * np.pi)
    found = infinite_width_kernels(jnp.stack([first, second]), depth=1, hidden_gain=3.0, output_gain=1.0)
    np.testing.assert_allclose(found.hidden[1, 0, 1], product, rtol=1e-12)
    np.testing.assert_allclose(found.errors[0, 0, 1], (np.pi - 2.0) / (2 * np.pi), rtol=1e-12)


@pytest.mark.parametrize("name", ["erf", "tanh", "gelu", "identity"])
def test_expectations_are_integrals_over_a_gaussian_plane(name):
    activation = ACTIVATIONS[name]
    found = infinite_width_kernels(INPUTS[:2], depth=1, activation=activation, hidden_gain=1.0, bias_variance=0.1)
    covariance = np.asarray(INPUTS[:2] @ INPUTS[:2].T) / 5 + 0.1
    plane = np.linspace(-9, 9, 401)
    whitened = np.stack(np.meshgrid(plane, plane), axis=-1) @ np.linalg.cholesky(covariance).T
    density = np.exp(-(plane[:, None] ** 2 + plane**2) / 2) / (2 * np.pi) * (plane[1] - plane[0]) ** 2
    for function, measured in ((activation, found.hidden[1]), (activation.derivative, found.errors[0])):
        values = np.asarray(function(jnp.asarray(whitened)))
        expected = (density * values[..., 0] * values[..., 1]).sum()
        np.testing.assert_allclose(measured[0, 1], expected, rtol=1e-12)
        np.testing.assert_allclose(measured[0, 0], (density * values[..., 0] ** 2).sum(), rtol=1e-12)


@pytest.mark.parametrize("bias_variance", [None, 0.0, 0.4])
@pytest.mark.parametrize("standard", [True, False])
def test_one_hidden_layer_has_the_limit_as_its_mean(standard, bias_variance):
    """At width 6, by Jacobians of 4000 networks in either parametrisation; a bias of variance 0 is a parameter."""
    widths, gains = (5, 6, 1), (1.7, 0.8)
    limit = infinite_width_kernels(INPUTS, depth=1, hidden_gain=1.7, output_gain=0.8, bias_variance=bias_variance)
    expected = limit.standard_tangent(widths) if standard else limit.tangent
    deviation = (bias_variance or 0.0) ** 0.5

    def outputs(free):
        hidden = INPUTS
        for layer, (matrix, bias) in enumerate(free):
            factor = 1.0 if standard else (gains[layer] / widths[layer]) ** 0.5
            hidden = factor * hidden @ matrix.T
            if bias_variance is not None:
                hidden = hidden + (1.0 if standard else deviation) * bias[None, :]
            hidden = jnp.maximum(hidden, 0) if layer == 0 else hidden
        return hidden.ravel()

    def one(key):
        entries = jax.random.normal(key, (6 * 5 + 6 + 6 + 1,))
        first, bias, last, shift = entries[:30].reshape(6, 5), entries[30:36], entries[36:42][None, :], entries[42:]
        factors = [(gain / width) ** 0.5 if standard else 1.0 for gain, width in zip(gains, widths, strict=False)]
        scale = deviation if standard else 1.0
        free = [(factors[0] * first, scale * bias), (factors[1] * last, scale * shift)]
        rows = [leaf.reshape(4, -1) for leaf in jax.tree.leaves(jax.jacrev(outputs)(free))]
        return sum(row @ row.T for row in rows)

    measured = jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=100))(jax.random.split(jax.random.key(0), 4000))
    error = measured.std(axis=0) / 4000**0.5
    assert float((jnp.abs(measured.mean(axis=0) - expected) / error).max()) < 4.5
    assert float((error / jnp.abs(expected)).max()) < 0.03


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_two_sets_are_blocks_of_one(name):
    options = {"depth": 3, "activation": ACTIVATIONS[name], "bias_variance": 0.2}
    whole = infinite_width_kernels(INPUTS, **options)
    part = infinite_width_kernels(INPUTS[:1], INPUTS[1:], **options)
    for attribute in ("covariance", "tangent"):
        np.testing.assert_allclose(getattr(part, attribute), getattr(whole, attribute)[:1, 1:], rtol=1e-12)
    np.testing.assert_allclose(whole.tangent, whole.tangent.T, rtol=1e-10)
    assert float(jnp.linalg.eigvalsh(whole.tangent)[0]) > 0


def test_equal_opposite_and_empty_inputs():
    doubled = jnp.concatenate([INPUTS[:1], INPUTS[:1], 2 * INPUTS[:1], -INPUTS[:1], jnp.zeros((1, 5))])
    found = infinite_width_kernels(doubled, depth=2)
    assert found.covariance[0, 0] == found.covariance[0, 1]
    np.testing.assert_allclose(found.tangent[0, :3], found.tangent[0, 0] * jnp.array([1.0, 1.0, 2.0]), rtol=1e-14)
    np.testing.assert_allclose(found.hidden[1, 0, 3], 0, atol=1e-16)
    assert (found.tangent[4] == 0).all()
    assert jnp.isfinite(jax.grad(lambda inputs: infinite_width_kernels(inputs, depth=2).tangent.sum())(doubled)).all()
    assert infinite_width_kernels(INPUTS[:0], depth=2).tangent.shape == (0, 0)


def test_without_hidden_layers_the_kernel_is_linear():
    found = infinite_width_kernels(INPUTS, depth=0, output_gain=3.0)
    np.testing.assert_allclose(found.tangent, 3 / 5 * INPUTS @ INPUTS.T, rtol=1e-14)
    np.testing.assert_allclose(found.standard_tangent((5,)), INPUTS @ INPUTS.T, rtol=1e-14)


def test_single_precision_stays_single():
    single = infinite_width_kernels(INPUTS.astype(jnp.float32), depth=3, activation=Tanh())
    assert single.tangent.dtype == jnp.float32
    double = infinite_width_kernels(INPUTS, depth=3, activation=Tanh())
    np.testing.assert_allclose(single.tangent, double.tangent, rtol=2e-5)


def test_misfits_are_refused(unchecked):
    for arguments, options, message in (
        ((INPUTS[0],), {}, "examples, features"),
        ((INPUTS, INPUTS[:, :3]), {}, "one number of features"),
        ((INPUTS, INPUTS.astype(jnp.float32)), {}, "one dtype"),
        ((INPUTS,), {"depth": -1}, "not negative"),
        ((INPUTS,), {"hidden_gain": -1.0}, "not negative"),
        ((INPUTS,), {"nodes": 1}, "two nodes at least"),
    ):
        with pytest.raises(ValueError, match=message):
            infinite_width_kernels(*arguments, **{"depth": 1} | options)
    with pytest.raises(ValueError, match="2 layers of weights"):
        infinite_width_kernels(INPUTS, depth=1).standard_tangent((5,))
