"""Backward rules, as laws: exactness of backpropagation, what the alternatives share with it, and where they differ."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.feedback import (
    MLP,
    Backprop,
    DirectFeedbackAlignment,
    FeedbackAlignment,
    Gelu,
    Identity,
    Relu,
    Tanh,
)

SAMPLERS = {
    "sequential": FeedbackAlignment.sample,
    "direct": DirectFeedbackAlignment.sample,
}
KINDS = ["backprop", *SAMPLERS]


def problem(depth, *, activation=Relu(), use_bias=False):
    """A network of ``depth`` hidden layers and three outputs, and inputs and a cotangent for eight examples."""
    generator = np.random.default_rng(depth)
    widths = (5, *[6, 9, 4, 7][:depth], 3)
    weights = [generator.standard_normal(shape) for shape in itertools.pairwise(widths)]
    biases = [generator.standard_normal(width) for width in widths[1:]] if use_bias else None
    network = MLP([weight.T for weight in weights], biases, activation)
    return network, jnp.asarray(generator.standard_normal((8, 5))), jnp.asarray(generator.standard_normal((8, 3)))


def rule_for(kind, network):
    if kind == "backprop":
        return Backprop()
    generator = np.random.default_rng(100)
    hidden = network.widths[1:-1]
    if kind == "direct":
        return DirectFeedbackAlignment([generator.standard_normal((width, 3)) for width in hidden])
    return FeedbackAlignment([generator.standard_normal(shape) for shape in itertools.pairwise((*hidden, 3))])


@jax.jit
def gradients(rule, network, inputs, cotangent):
    return rule.gradients(network, network.forward(inputs), cotangent)


@jax.jit
def deltas(rule, network, inputs, cotangent):
    return rule.deltas(network, network.forward(inputs), cotangent)


def assert_close(first, second, tolerance=1e-13):
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(1.0, float(jnp.abs(other).max())))


@pytest.mark.parametrize("activation", [Relu(), Tanh(), Gelu(), Identity()], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(("depth", "use_bias"), [(0, True), (1, False), (4, True)])
def test_backprop_is_the_gradient(activation, depth, use_bias):
    network, inputs, cotangent = problem(depth, activation=activation, use_bias=use_bias)
    expected = jax.jit(jax.grad(lambda network: jnp.sum(cotangent * network(inputs))))(network)
    assert_close(gradients(Backprop(), network, inputs, cotangent), expected)


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize("use_bias", [False, True])
def test_the_alternatives_example_by_example(kind, use_bias):
    network, inputs, cotangent = problem(4, use_bias=use_bias)
    rule, forward = rule_for(kind, network), network.forward(inputs)
    expected = jax.tree.map(lambda leaf: np.zeros(leaf.shape), network)
    for n, error in enumerate(np.asarray(cotangent)):
        delta = error
        for layer in reversed(range(5)):
            if layer < 4:
                source = error if kind == "direct" else delta
                delta = (np.asarray(rule.feedback[layer]) @ source) * np.asarray(forward.gates[layer][n])
            expected.weights[layer][:] += np.outer(delta, forward.activations[layer][n])
            if use_bias:
                expected.biases[layer][:] += delta
    assert_close(gradients(rule, network, inputs, cotangent), expected)


@pytest.mark.parametrize("depth", [0, 1, 4])
def test_transposed_weights_give_backprop_exactly(depth):
    network, inputs, cotangent = problem(depth)
    forward = network.forward(inputs)
    aligned = FeedbackAlignment([weight.T for weight in network.weights[1:]])
    assert eqx.tree_equal(*(rule.gradients(network, forward, cotangent) for rule in (aligned, Backprop())))


def test_one_hidden_layer_makes_the_alternatives_one():
    network, inputs, cotangent = problem(1)
    sequential, direct = (sample(network, key=jax.random.key(5)) for sample in SAMPLERS.values())
    assert eqx.tree_equal(sequential.feedback, direct.feedback)
    forward = network.forward(inputs)
    assert eqx.tree_equal(*(rule.gradients(network, forward, cotangent) for rule in (sequential, direct)))


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize("depth", [0, 1, 4])
def test_the_output_layer_has_the_same_gradient_under_every_rule(kind, depth):
    network, inputs, cotangent = problem(depth, use_bias=True)
    exact, other = (gradients(rule_for(name, network), network, inputs, cotangent) for name in ("backprop", kind))
    assert jnp.array_equal(exact.weights[-1], other.weights[-1])
    assert jnp.array_equal(exact.biases[-1], other.biases[-1])
    if depth:
        assert not jnp.allclose(exact.weights[0], other.weights[0])


@pytest.mark.parametrize("kind", KINDS)
def test_several_cotangents_at_once(kind):
    network, inputs, _ = problem(3)
    rule = rule_for(kind, network)
    several = jnp.asarray(np.random.default_rng(7).standard_normal((8, 2, 4, 3)))
    together = deltas(rule, network, inputs, several)
    for i, j in itertools.product(range(2), range(4)):
        assert_close([delta[:, i, j] for delta in together], deltas(rule, network, inputs, several[:, i, j]))
    shared = deltas(rule, network, inputs, several[:1])
    repeated = deltas(rule, network, inputs, jnp.broadcast_to(several[:1], several.shape))
    assert_close(shared[:-1], repeated[:-1])
    assert jnp.array_equal(shared[-1], several[:1])


@pytest.mark.parametrize("kind", KINDS)
def test_deltas_are_linear_in_the_cotangent(kind):
    network, inputs, first = problem(3)
    rule, second = rule_for(kind, network), jnp.cos(first)
    combined = deltas(rule, network, inputs, 2 * first - 3 * second)
    parts = (deltas(rule, network, inputs, cotangent) for cotangent in (first, second))
    assert_close(combined, [2 * one - 3 * other for one, other in zip(*parts, strict=True)])


@pytest.mark.parametrize("kind", SAMPLERS)
def test_feedback_has_the_variance_of_the_weights_it_replaces(kind):
    network = MLP.initialise((4, 300, 200, 100), key=jax.random.key(0))
    rule = SAMPLERS[kind](network, hidden_gain=3.0, output_gain=0.7, key=jax.random.key(1))
    ends = (200, 100) if kind == "sequential" else (100, 100)
    assert [matrix.shape for matrix in rule.feedback] == [(300, ends[0]), (200, ends[1])]
    for matrix, variance in zip(rule.feedback, (3 / 300, 0.7 / 200), strict=True):
        ratio = np.asarray(matrix) ** 2 / variance
        assert abs(ratio.mean() - 1) < 5 * np.sqrt(2 / ratio.size)


@pytest.mark.parametrize("kind", SAMPLERS)
def test_an_ensemble_of_feedback_is_one_vectorised_call(kind):
    network = MLP.initialise((4, 5, 2), dtype=jnp.float32, key=jax.random.key(0))
    inputs = jnp.ones((3, 4), jnp.float32)
    keys = jax.random.split(jax.random.key(1), 7)
    ensemble = jax.vmap(lambda key: SAMPLERS[kind](network, key=key))(keys)
    updates = jax.vmap(gradients, (0, None, None, None))(ensemble, network, inputs, network(inputs))
    assert updates.weights[0].shape == (7, 5, 4)
    assert updates.dtype == jnp.float32
    single = gradients(SAMPLERS[kind](network, key=keys[3]), network, inputs, network(inputs))
    np.testing.assert_allclose(updates.weights[0][3], single.weights[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (FeedbackAlignment([np.ones((6, 9)), np.ones((9, 4))]), r"hidden layer 2 has shape \(9, 3\).*got \(9, 4\)"),
        (FeedbackAlignment([np.ones((6, 9))]), "one feedback matrix per hidden layer, 2 for widths"),
        (DirectFeedbackAlignment([np.ones((6, 9)), np.ones((9, 3))]), r"hidden layer 1 has shape \(6, 3\)"),
        (DirectFeedbackAlignment([np.ones((6, 3), np.float32), np.ones((9, 3))]), "hidden layer 1 has dtype float32"),
    ],
)
def test_misfits_are_told_by_layer(unchecked, rule, message):
    network, inputs, cotangent = problem(2)
    with pytest.raises(ValueError, match=message):
        rule.gradients(network, network.forward(inputs), cotangent)


def test_cotangents_that_do_not_fit_are_refused(unchecked):
    network, inputs, cotangent = problem(2)
    forward = network.forward(inputs)
    for wrong in (cotangent[:5], cotangent[:, :2], cotangent[0]):
        with pytest.raises(ValueError, match=r"8 \(or 1\) examples and 3 outputs"):
            Backprop().deltas(network, forward, wrong)
    with pytest.raises(ValueError, match="one cotangent"):
        Backprop().gradients(network, forward, cotangent[:, None, :])
