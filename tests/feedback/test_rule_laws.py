"""Laws of backward rules, over a table of all rules and several networks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.feedback import (
    MLP,
    Backprop,
    Convolution,
    ConvolutionalNetwork,
    DirectFeedbackAlignment,
    FeedbackAlignment,
    Gelu,
    Identity,
    KolenPollack,
    Relu,
    ResampledSignSymmetry,
    SignSymmetry,
    Tanh,
)

KEY = jax.random.key(7)
RULES = {
    "backprop": lambda network: Backprop(),
    "feedback alignment": lambda network: FeedbackAlignment.sample(network, hidden_gain=9.0, key=KEY),
    "direct": lambda network: DirectFeedbackAlignment.sample(network, hidden_gain=9.0, key=KEY),
    "uniform signs": lambda network: SignSymmetry.uniform(network),
    "fixed magnitudes": lambda network: SignSymmetry.sample(network, key=KEY),
    "resampled magnitudes": lambda network: ResampledSignSymmetry(KEY),
    "kolen-pollack": lambda network: KolenPollack.sample(network, key=KEY),
}
STATELESS = [name for name in RULES if name not in ("resampled magnitudes", "kolen-pollack")]


def with_biases(network, dtype=jnp.float64):
    generator = np.random.default_rng(2)
    biases = [generator.standard_normal(weight.shape[0]) for weight in network.weights]
    options = {"convolutions": network.convolutions} if isinstance(network, ConvolutionalNetwork) else {}
    network = type(network)(network.weights, biases=biases, activation=network.activation, **options)
    return jax.tree.map(lambda leaf: leaf.astype(dtype), network)


NETWORKS = {
    "linear map": with_biases(MLP.initialise((5, 3), key=jax.random.key(0))),
    "one hidden layer": MLP.initialise((5, 6, 3), activation=Identity(), key=jax.random.key(1)),
    "three hidden layers": with_biases(
        MLP.initialise((5, 6, 9, 4, 3), activation=(Relu(), Tanh(), Gelu()), key=jax.random.key(2))
    ),
    "convolutions": with_biases(
        ConvolutionalNetwork.initialise(
            (2, 6, 5), channels=(3, 4), hidden=(5,), outputs=3, activation=Gelu(), key=jax.random.key(3)
        )
    ),
}


def data(network, examples=4):
    generator = np.random.default_rng(5)
    inputs = jnp.asarray(generator.standard_normal((examples, network.widths[0])), network.dtype)
    return inputs, jnp.asarray(generator.standard_normal((examples, network.widths[-1])), network.dtype)


@eqx.filter_jit
def evaluated(rule, network, inputs, cotangent):
    """Gradients, speed, and the errors for three cotangents at once, the last a combination of the others."""
    forward = network.forward(inputs)
    second = jnp.cos(cotangent)
    several = jnp.stack([cotangent, second, 2 * cotangent - 3 * second], axis=1)
    return (
        rule.gradients(network, forward, cotangent),
        rule.speed(network, forward, cotangent, throw=False),
        rule.deltas(network, forward, several),
    )


def gradients(rule, network, inputs, cotangent):
    return evaluated(rule, network, inputs, cotangent)[0]


def assert_close(first, second, tolerance=1e-14):
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(1.0, float(jnp.abs(other).max())))


def convolve(image, kernel, side):
    return jax.lax.conv_general_dilated(image, kernel, side.strides, side.padding)


@eqx.filter_custom_vjp
def linear(arguments, side):
    """One layer; its error goes back through ``matrix``, and its weights get their own gradient."""
    hidden, weight, _ = arguments
    if not isinstance(side, Convolution):
        return hidden @ weight.T
    kernel = weight.reshape(-1, side.image_shape[0], *side.kernel_shape)
    return convolve(hidden.reshape(-1, *side.image_shape), kernel, side)


@linear.def_fwd
def _forward(perturbed, arguments, side):
    return linear(arguments, side), None


@linear.def_bwd
def _backward(residuals, cotangent, perturbed, arguments, side):
    hidden, weight, matrix = arguments
    if not isinstance(side, Convolution):
        return cotangent @ matrix.T, cotangent.T @ hidden, jnp.zeros_like(matrix)
    image = hidden.reshape(-1, *side.image_shape)
    shape = (weight.shape[0], side.image_shape[0], *side.kernel_shape)
    below = jax.vjp(lambda image: convolve(image, matrix.T.reshape(shape), side), image)[1](cotangent)[0]
    own = jax.vjp(lambda kernel: convolve(image, kernel, side), weight.reshape(shape))[1](cotangent)[0]
    return below.reshape(hidden.shape), own.reshape(weight.shape), jnp.zeros_like(matrix)


@jax.custom_vjp
def attached(values, hidden, matrix):
    """``values``, with their cotangent also sent to ``hidden`` through ``matrix``."""
    return values


attached.defvjp(
    lambda values, hidden, matrix: (values, matrix),
    lambda matrix, cotangent: (cotangent, cotangent @ matrix.T, jnp.zeros_like(matrix)),
)


@eqx.filter_jit
def independent(network, inputs, cotangent, matrices, direct):
    """The gradient by automatic differentiation of a network whose linear maps have another way back."""

    def loss(network):
        hidden, layers, count = inputs, [], len(network.weights)
        activations = network.activation if isinstance(network.activation, tuple) else (network.activation,) * count
        for layer, (side, weight) in enumerate(zip(network.connections, network.weights, strict=True)):
            back = weight.T if direct or layer == 0 else matrices[layer - 1]
            hidden = jax.lax.stop_gradient(hidden) if direct else hidden
            values = linear((hidden, weight, jax.lax.stop_gradient(back)), side)
            bias = None if network.biases is None else network.biases[layer]
            if bias is not None:
                values = values + bias.reshape(1, -1, *[1] * (values.ndim - 2))
            hidden = values.reshape(len(inputs), -1)
            if layer < count - 1:
                hidden = activations[layer](hidden)
                layers.append(hidden)
        if direct:
            for below, matrix in zip(layers, matrices, strict=True):
                hidden = attached(hidden, below, matrix)
        return jnp.sum(cotangent * hidden)

    return jax.grad(loss)(network)


def expected_matrices(name, rule, network):
    transposed = [np.asarray(weight).T for weight in network.weights[1:]]
    if name == "backprop":
        return transposed
    if name in ("feedback alignment", "direct", "kolen-pollack"):
        return list(rule.feedback)
    if name == "resampled magnitudes":
        return jax.jit(lambda network: list(rule.backward_matrices(network)))(network)
    pairs = zip(rule.magnitudes, transposed, strict=True)
    return [np.where(back > 0, 1, -1) * np.asarray(magnitude) for magnitude, back in pairs]


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("name", RULES)
def test_gradients_and_speeds_have_an_independent_route(name, network):
    rule, (inputs, cotangent) = RULES[name](network), data(network)
    matrices = jax.tree.map(jnp.asarray, expected_matrices(name, rule, network))
    expected = independent(network, inputs, cotangent, matrices, name == "direct")
    measured, speed, _ = evaluated(rule, network, inputs, cotangent)
    assert_close(measured, expected)
    exact = independent(network, inputs, cotangent, [weight.T for weight in network.weights[1:]], False)
    products = jax.tree.map(lambda one, other: float(jnp.sum(one * other)), exact, expected)
    assert float(speed) == pytest.approx(sum(jax.tree.leaves(products)), rel=1e-12)


@pytest.mark.parametrize("name", ["one hidden layer", "convolutions"])
def test_transposed_weights_give_backprop_exactly(name):
    network = NETWORKS[name]

    @eqx.filter_jit
    def updates(rule, network):
        """One program per rule: transposes given from outside may be multiplied in another order."""
        forward = network.forward(inputs)
        transposed = [weight.T for weight in network.weights[1:]]
        known = {
            Backprop: Backprop,
            FeedbackAlignment: lambda: FeedbackAlignment(transposed),
            KolenPollack: lambda: KolenPollack(transposed),
            SignSymmetry: lambda: SignSymmetry([jnp.abs(matrix) for matrix in transposed]),
        }
        return known[rule]().gradients(network, forward, cotangent)

    inputs, cotangent = data(network)
    expected = updates(Backprop, network)
    for rule in (FeedbackAlignment, KolenPollack, SignSymmetry):
        assert eqx.tree_equal(updates(rule, network), expected), rule
    outside = FeedbackAlignment([weight.T for weight in network.weights[1:]])
    assert_close(gradients(outside, network, inputs, cotangent), expected, 1e-15)


def test_one_hidden_layer_makes_sequential_and_direct_feedback_one():
    convolution = ConvolutionalNetwork.initialise((2, 6, 5), channels=(3,), outputs=3, key=jax.random.key(3))
    for network in (NETWORKS["one hidden layer"], convolution):
        sequential, direct = (kind.sample(network, key=KEY) for kind in (FeedbackAlignment, DirectFeedbackAlignment))
        assert eqx.tree_equal(sequential.feedback, direct.feedback)
        first, second = (gradients(rule, network, *data(network)) for rule in (sequential, direct))
        assert eqx.tree_equal(first, second)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("name", RULES)
def test_errors_are_linear_and_may_be_several(name, network):
    inputs, cotangent = data(network)
    deltas = evaluated(RULES[name](network), network, inputs, cotangent)[2]
    for delta, width in zip(deltas, network.widths[1:], strict=True):
        assert delta.shape == (4, 3, width)
        assert_close(delta[:, 2], 2 * delta[:, 0] - 3 * delta[:, 1], 1e-13)
    assert jnp.array_equal(deltas[-1][:, 0], cotangent)


@pytest.mark.parametrize("name", ["direct", "uniform signs"])
def test_the_speed_is_the_slope_of_the_loss(name):
    network = NETWORKS["three hidden layers"]
    rule, (inputs, cotangent) = RULES[name](network), data(network)
    direction, speed, _ = evaluated(rule, network, inputs, cotangent)
    loss = jax.jit(lambda network: jnp.sum(cotangent * network(inputs)))
    assert float(jax.jvp(loss, (network,), (direction,))[1]) == pytest.approx(float(speed), rel=1e-12)


@pytest.mark.parametrize("name", ["direct", "resampled magnitudes", "kolen-pollack"])
def test_single_precision_stays_single(name):
    network = NETWORKS["three hidden layers"]
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), network)
    rule = RULES[name](single)
    double = jax.tree.map(lambda leaf: leaf.astype(jnp.float64) if eqx.is_inexact_array(leaf) else leaf, rule)
    if name == "resampled magnitudes":
        double = FeedbackAlignment([matrix.astype(jnp.float64) for matrix in rule.backward_matrices(single)])
    measured = gradients(rule, single, *data(single))
    assert {leaf.dtype for leaf in jax.tree.leaves(measured)} == {jnp.dtype(jnp.float32)}
    wide = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), (single, *data(single)))
    assert_close(jax.tree.map(lambda leaf: leaf.astype(jnp.float64), measured), gradients(double, *wide), 2e-6)


@pytest.mark.parametrize("kind", [FeedbackAlignment.sample, DirectFeedbackAlignment.sample, SignSymmetry.sample])
def test_ensembles_of_rules_are_one_vectorised_call(kind):
    network = NETWORKS["convolutions"]
    inputs, cotangent = data(network)
    keys = jax.random.split(KEY, 3)

    @jax.jit
    def speeds(keys):
        return jax.vmap(lambda key: kind(network, key=key).speed(network, network.forward(inputs), cotangent))(keys)

    together = speeds(keys)
    for key, speed in zip(keys, together, strict=True):
        alone = evaluated(kind(network, key=key), network, inputs, cotangent)[1]
        assert float(speed) == pytest.approx(float(alone), rel=1e-12)
    assert len(set(together.tolist())) == 3


def padded(array, shape):
    return jnp.pad(array, [(0, size - old) for old, size in zip(array.shape, shape, strict=True)])


@pytest.mark.parametrize("name", ["direct", "fixed magnitudes", "kolen-pollack"])
def test_units_of_zero_weights_stay_dead(name):
    """A network padded with zeros takes the same steps, and its padding stays zero."""
    small = MLP.initialise((5, 6, 4, 3), key=jax.random.key(2))
    inputs, targets = data(small)
    rule = RULES[name](small)
    large = MLP([padded(*pair) for pair in zip(small.weights, [(8, 5), (7, 8), (3, 7)], strict=True)])
    shapes = [(8, 3), (7, 3)] if name == "direct" else [(8, 7), (7, 3)]
    leaves, structure = jax.tree.flatten(rule)
    wide = jax.tree.unflatten(structure, [padded(*pair) for pair in zip(leaves, shapes, strict=True)])

    @eqx.filter_jit
    def step(rule, network):
        forward = network.forward(inputs)
        change = jax.tree.map(lambda leaf: -0.02 * leaf, rule.gradients(network, forward, forward.outputs - targets))
        return rule.update(change), jax.tree.map(jnp.add, network, change)

    for _ in range(5):
        (rule, small), (wide, large) = step(rule, small), step(wide, large)
    for weight, other in zip(small.weights, large.weights, strict=True):
        block = tuple(map(slice, weight.shape))
        np.testing.assert_allclose(other[block], weight, rtol=0, atol=1e-14)
        assert not other.at[block].set(0).any()


def test_kolen_pollack_tends_to_backprop():
    """`W^T − B` is multiplied by `1 − decay` in every step, whatever the weights do."""
    network = NETWORKS["convolutions"]
    inputs, targets = data(network)
    rule, decay = KolenPollack.sample(network, key=KEY), 0.2

    @jax.jit
    def step(rule, network, decay):
        forward = network.forward(inputs)
        gradient = rule.gradients(network, forward, forward.outputs - targets)
        change = jax.tree.map(lambda leaf: -1e-3 * leaf, gradient)
        moved = jax.tree.map(lambda weight, leaf: (1 - decay) * weight + leaf, network, change)
        return rule.update(change, decay=decay), moved

    def difference(rule, network):
        pairs = zip(rule.feedback, network.weights[1:], strict=True)
        return [weight.T - matrix for matrix, weight in pairs]

    start = difference(rule, network)
    for _ in range(4):
        rule, network = step(rule, network, decay)
    assert_close(difference(rule, network), [0.8**4 * matrix for matrix in start])
    still, _ = step(rule, network, 0.0)
    assert not jnp.allclose(still.feedback[0], rule.feedback[0], rtol=0, atol=1e-12)


def test_magnitudes_are_drawn_again_with_every_update():
    network = MLP.initialise((4, 300, 200, 3), key=jax.random.key(0))
    rule = ResampledSignSymmetry(KEY, hidden_gain=3.0)
    first, again, later = (
        each.backward_matrices(network)[0] for each in (rule, rule, rule.update(network).update(network))
    )
    assert jnp.array_equal(first, again)
    signs = jnp.sign(network.weights[1].T)
    for matrix in (first, later):
        assert jnp.array_equal(jnp.sign(matrix), signs)
        scaled = np.abs(matrix) / np.sqrt(3 / 300)
        assert abs(scaled.mean() - np.sqrt(2 / np.pi)) < 5 * np.sqrt(1 - 2 / np.pi) / np.sqrt(scaled.size)
    assert abs(np.corrcoef(np.abs(first).ravel(), np.abs(later).ravel())[0, 1]) < 5 / np.sqrt(first.size)


@pytest.mark.parametrize("name", STATELESS)
def test_rules_without_a_state_return_themselves(name):
    network = NETWORKS["one hidden layer"]
    rule = RULES[name](network)
    assert rule.update(network, decay=0.1) is rule


@pytest.mark.parametrize("name", RULES)
def test_a_broken_weight_is_not_silent(unchecked, name):
    """Where the first layer is broken, its own gradient is too, whatever the cotangent."""
    network = NETWORKS["three hidden layers"]
    rule, (inputs, cotangent) = RULES[name](network), data(network)
    broken = eqx.tree_at(lambda network: network.weights[0], network, network.weights[0].at[2, 1].set(jnp.nan))
    measured, speed, _ = evaluated(rule, broken, inputs, cotangent)
    assert jnp.isnan(measured.weights[0][2]).all()
    assert jnp.isnan(speed)
    forward = broken.forward(inputs)
    with pytest.raises(ValueError, match="NaN or infinite"):
        rule.speed(broken, forward, cotangent)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (FeedbackAlignment([np.ones((26, 4)), np.ones((16, 3))]), r"shape \(27, 4\).*got \(26, 4\).*Alignment.sample"),
        (DirectFeedbackAlignment([np.ones((27, 4)), np.ones((16, 3))]), r"hidden layer 1 has shape \(27, 3\)"),
        (KolenPollack([np.ones((27, 4))]), "2 for widths.*got 1"),
        (SignSymmetry([np.ones(()), np.ones(()), np.ones(())]), "2 for widths.*got 3"),
        (SignSymmetry([np.ones(()), np.ones((3, 16))]), r"hidden layer 2 has shape \(16, 3\)"),
        (SignSymmetry([np.ones((), np.float32), np.ones(())]), "hidden layer 1 has dtype float32"),
    ],
)
def test_misfits_are_told_by_layer(unchecked, rule, message):
    network = ConvolutionalNetwork.initialise((2, 6, 5), channels=(3, 4), outputs=3, key=KEY)
    inputs, cotangent = data(network)
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(lambda: rule.gradients(network, network.forward(inputs), cotangent))
