"""The initial erosion, as laws: its definition, its invariances, the forms without a gradient per draw, and edges."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

from jaxsolve._montecarlo import draws
from jaxsolve._results import RESULTS
from jaxsolve.feedback import (
    MLP,
    Backprop,
    DirectFeedbackAlignment,
    FeedbackAlignment,
    MixedNormal,
    Tanh,
    TwoLayerForm,
    conditional_draw,
    erosion_draws,
    erosion_form,
    initial_erosion,
    two_layer_erosion,
    weight_variances,
)
from jaxsolve.tangent import kernel, output_kernel

KEY = jax.random.key(2)


def problem(hidden, *, outputs=3, examples=8, use_bias=False, activation=None, seed=0):
    generator = np.random.default_rng(seed)
    widths = (5, *hidden, outputs)
    weights = [generator.standard_normal(shape).T / np.sqrt(shape[0]) for shape in pairwise(widths)]
    biases = [0.1 * generator.standard_normal(width) for width in widths[1:]] if use_bias else None
    network = MLP(weights, biases, *([activation] if activation else []))
    return (
        network,
        jnp.asarray(generator.standard_normal((examples, 5))),
        jnp.asarray(generator.standard_normal((examples, outputs))),
    )


def flat(network):
    return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(network)])


@pytest.mark.parametrize("biased", [0, 1, 3])
def test_the_speed_is_the_slope_of_the_loss(biased):
    """Against automatic differentiation of a loss that is not quadratic, with the update taken as one vector."""
    network, inputs, labels = problem((6, 4), use_bias=True, activation=Tanh())
    biases = [bias if layer < biased else None for layer, bias in enumerate(network.biases)]
    network = MLP(network.weights, biases, Tanh())
    rule = FeedbackAlignment.sample(network, key=KEY)

    def loss(network):
        return jnp.mean(jnp.sum(jnp.cosh(network(inputs) - labels), axis=1))

    cotangent = jnp.sinh(eqx.filter_jit(network)(inputs) - labels) / len(inputs)
    update = jax.jit(lambda rule, network: rule.gradients(network, network.forward(inputs), cotangent))(rule, network)
    gradient = jax.jit(jax.grad(loss))(network)
    found = initial_erosion(network, inputs, cotangent, rule)
    slope = jax.jit(lambda network, update: jax.jvp(loss, (network,), (update,))[1])(network, update)
    np.testing.assert_allclose(found.speed, slope, rtol=1e-13)
    np.testing.assert_allclose(found.backprop_speed, flat(gradient) @ flat(gradient), rtol=1e-13)
    np.testing.assert_allclose(found.erosion, 1 - slope / (flat(gradient) @ flat(gradient)), rtol=1e-12)


def test_shares_and_speeds_are_quadratic_forms_of_the_kernels():
    network, inputs, cotangent = problem((6, 4), use_bias=True)
    rule = DirectFeedbackAlignment.sample(network, key=KEY)
    found = initial_erosion(network, inputs, cotangent, rule)
    error = cotangent.ravel()
    total = error @ kernel(network, inputs, Backprop()) @ error
    np.testing.assert_allclose(found.speed, error @ kernel(network, inputs, rule) @ error, rtol=1e-12)
    np.testing.assert_allclose(found.output_share, error @ output_kernel(network, inputs) @ error / total, rtol=1e-13)
    np.testing.assert_allclose(found.hidden_share + found.output_share, 1, rtol=1e-15)


def test_transposed_weights_lose_nothing_and_one_layer_has_nothing_to_lose():
    network, inputs, cotangent = problem((6, 4))
    rule = FeedbackAlignment([weight.T for weight in network.weights[1:]])
    assert float(initial_erosion(network, inputs, cotangent, rule).erosion) == 0
    linear, inputs, cotangent = problem(())
    found = initial_erosion(linear, inputs, cotangent, FeedbackAlignment([]))
    assert (float(found.erosion), float(found.output_share)) == (0, 1)
    assert erosion_draws(linear, inputs, cotangent, count=2, key=KEY).tolist() == [0, 0]


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1e200])
def test_the_erosion_does_not_depend_on_the_scale_of_the_cotangent(scale):
    network, inputs, cotangent = problem((6, 4))
    rule = FeedbackAlignment.sample(network, key=KEY)
    expected = initial_erosion(network, inputs, cotangent, rule).erosion
    np.testing.assert_allclose(initial_erosion(network, inputs, scale * cotangent, rule).erosion, expected, rtol=1e-12)


def test_with_one_hidden_layer_both_rules_are_one_and_affine_in_the_feedback():
    network, inputs, cotangent = problem((6,))
    matrix = FeedbackAlignment.sample(network, key=KEY).feedback

    def erosion(rule, factor):
        return initial_erosion(network, inputs, cotangent, rule([factor * matrix[0]])).erosion

    assert float(erosion(FeedbackAlignment, 1.0)) == float(erosion(DirectFeedbackAlignment, 1.0))
    share = erosion(FeedbackAlignment, 0.0)
    np.testing.assert_allclose(erosion(FeedbackAlignment, 3.0) - share, 3 * (erosion(FeedbackAlignment, 1.0) - share))


@pytest.mark.parametrize(("hidden", "use_bias", "direct"), [((6,), True, False), ((6, 4, 7), True, True)])
def test_short_forms_are_the_backward_pass(hidden, use_bias, direct):
    network, inputs, cotangent = problem(hidden, use_bias=use_bias, activation=Tanh())
    options = {"count": 5, "direct": direct, "key": KEY}
    slow, fast = (erosion_draws(network, inputs, cotangent, method=name, **options) for name in ("backward", "fast"))
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-13)
    assert np.ptp(slow) > 0.01


def test_the_tensor_form_is_the_backward_pass():
    network, inputs, cotangent = problem((6, 4), use_bias=True)
    found = [
        erosion_draws(network, inputs, cotangent, count=9, method=name, block=block, key=KEY)
        for name, block in (("backward", 4), ("fast", 9), ("tensor", 2))
    ]
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(found[2], found[0], rtol=0, atol=1e-13)


def enumerated(form, *, direct):
    """Mean and variance over all signs of entries of unit variance: exact, by counting."""
    shapes = form.shapes(direct=direct)
    sizes = [rows * columns for rows, columns in shapes]
    signs = 2.0 * ((np.arange(2 ** sum(sizes))[:, None] >> np.arange(sum(sizes))) & 1) - 1

    def erosion(entries):
        pieces = jnp.split(entries, np.cumsum(sizes)[:-1])
        matrices = [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]
        return (form.direct if direct else form.sequential)(matrices)

    values = jax.jit(jax.vmap(erosion))(jnp.asarray(signs))
    return float(values.mean()), float(values.var())


@pytest.mark.parametrize("direct", [False, True])
def test_mean_and_variance_are_exact(direct):
    """Over every choice of signs of 14 feedback entries, with three hidden layers."""
    network, inputs, cotangent = problem((2, 3, 2) if not direct else (3, 2, 2), outputs=1)
    form = erosion_form(network, inputs, cotangent)
    mean, variance = enumerated(form, direct=direct)
    np.testing.assert_allclose(mean, form.hidden_share, rtol=1e-11)
    exact = form.direct_variance([1.0] * 3) if direct else form.sequential_variance([1.0] * 3)
    np.testing.assert_allclose(variance, exact, rtol=1e-11)
    assert variance > 1e-3


def test_tied_feedback_has_another_mean():
    """Mean zero is not enough: with `B_2 = B_1^T` the mean leaves the hidden share, with independent signs it does
    not; tying what lies below an independent matrix does no harm."""
    network, inputs, cotangent = problem((3, 3), outputs=3, seed=5)
    form = erosion_form(network, inputs, cotangent)
    signs = 2.0 * ((np.arange(2**9)[:, None] >> np.arange(9)) & 1) - 1
    matrices = jnp.asarray(signs).reshape(-1, 3, 3)
    tied = jax.vmap(lambda matrix: form.sequential([matrix, matrix.T]))(matrices)
    assert abs(float(tied.mean() - form.hidden_share)) > 0.05 * float(form.hidden_share)
    below, inputs, cotangent = problem((3, 3, 3), outputs=1, seed=5)
    form = erosion_form(below, inputs, cotangent)
    both = jax.vmap(lambda matrix, last: form.sequential([matrix, matrix.T, last]), (0, None))
    last = jnp.ones((3, 1))
    mean = (both(matrices, last).mean() + both(matrices, -last).mean()) / 2
    np.testing.assert_allclose(mean, form.hidden_share, rtol=1e-11)


@pytest.mark.parametrize("layer", range(3))
def test_any_one_matrix_can_be_integrated_out(layer):
    network, inputs, cotangent = problem((4, 3, 5), outputs=2)
    form, variances = erosion_form(network, inputs, cotangent), jnp.asarray(weight_variances(network.widths)[1:])
    real = erosion_draws(network, inputs, cotangent, count=4000, method="backward", key=KEY)
    found = draws(eqx.Partial(conditional_draw, form, variances, layer), jax.random.key(5 + layer), 4000, block=256)
    assert scipy.stats.ks_2samp(real, found).pvalue > 1e-3 / 3
    assert abs(float(found.var() / form.sequential_variance(variances)) - 1) < 0.15
    assert scipy.stats.ks_2samp(real, form.hidden_share + 1.3 * (found - form.hidden_share)).pvalue < 1e-6


@pytest.mark.parametrize(("hidden", "outputs"), [((6, 4), 3), ((3, 8), 4)])
def test_draws_in_law_follow_the_backward_pass(hidden, outputs):
    """Once with `B_1` integrated out, over summed examples, and once with the larger `B_2`."""
    network, inputs, cotangent = problem(hidden, outputs=outputs)
    real = erosion_draws(network, inputs, cotangent, count=4000, method="backward", key=KEY)
    found = erosion_draws(network, inputs, cotangent, count=4000, key=jax.random.key(8))
    assert scipy.stats.ks_2samp(real, found).pvalue > 1e-3
    law = two_layer_erosion(erosion_form(network, inputs, cotangent), weight_variances(network.widths)[1:])
    assert scipy.stats.kstest(real, law.cdf).pvalue > 1e-3


def test_the_exact_law_has_the_moments_of_the_form():
    network, inputs, cotangent = problem((6, 4))
    form, variances = erosion_form(network, inputs, cotangent), [0.7, 0.3]
    law = two_layer_erosion(form, variances)
    np.testing.assert_allclose(law.variance, form.sequential_variance(variances), rtol=1e-12)
    edges = np.linspace(-20, 20, 8_001) * float(jnp.sqrt(law.variance))
    mass, middle = np.diff(law.cdf(float(law.mean) + edges)), (edges[1:] + edges[:-1]) / 2
    second, fourth = (mass * middle**2).sum(), (mass * middle**4).sum()
    np.testing.assert_allclose(second, law.variance, rtol=1e-5)
    np.testing.assert_allclose(fourth / second**2 - 3, law.excess_kurtosis, rtol=1e-4)
    assert float(law.excess_kurtosis) > 0.1


def test_laws_that_are_known():
    """A normal law, the product of two normal variables, and a constant."""
    at = np.linspace(-3, 3, 13)
    normal = MixedNormal(jnp.zeros(()), jnp.array([0.6, 0.8]), jnp.zeros(2))
    np.testing.assert_allclose(normal.cdf(at), scipy.stats.norm.cdf(at), atol=1e-14)
    product = MixedNormal(jnp.ones(()), jnp.zeros(1), jnp.ones(1))
    expected = 0.5 + scipy.integrate.quad(scipy.special.k0, 0, 1.5)[0] / np.pi
    np.testing.assert_allclose(product.cdf(np.array([2.5, -0.5])), [expected, 1 - expected], atol=2e-5)
    assert MixedNormal(jnp.ones(()), jnp.zeros(1), jnp.zeros(1)).cdf(np.array([0.9, 1.0])).tolist() == [0, 1]
    assert normal.cdf(np.array([-1e9, 1e9])).tolist() == [0, 1]
    with pytest.raises(ValueError, match="finite mean"):
        MixedNormal(jnp.ones(()), jnp.full(1, jnp.nan), jnp.zeros(1)).cdf(at)


def test_dead_layers_repeated_examples_and_one_output():
    network, inputs, cotangent = problem((6, 4), outputs=1)
    first, second, third = network.weights
    dead = MLP((first, -jnp.abs(second), third), [jnp.zeros(6), jnp.zeros(4), jnp.zeros(1)])
    found = initial_erosion(dead, inputs, cotangent, FeedbackAlignment.sample(dead, key=KEY))
    assert (float(found.hidden_share), float(found.erosion)) == (0, 0)  # the bias of the last layer alone moves
    assert erosion_draws(dead, inputs, cotangent, count=3, key=KEY).tolist() == [0, 0, 0]
    twice = jnp.concatenate([inputs, inputs]), jnp.concatenate([cotangent, cotangent])
    rule = FeedbackAlignment.sample(network, key=KEY)
    once = initial_erosion(network, inputs, cotangent, rule)
    both = initial_erosion(network, *twice, rule)
    np.testing.assert_allclose(both.erosion, once.erosion, rtol=1e-12)
    np.testing.assert_allclose(both.speed, 4 * once.speed, rtol=1e-12)


@pytest.mark.parametrize(("spoil", "result"), [(0.0, RESULTS.no_speed), (jnp.nan, RESULTS.not_finite)])
def test_an_undefined_erosion_is_told(spoil, result):
    network, inputs, cotangent = problem((6, 4))
    rule = FeedbackAlignment.sample(network, key=KEY)
    found = initial_erosion(network, inputs, spoil * cotangent, rule, throw=False)
    assert bool(found.result == result)
    assert np.isnan([found.erosion, found.output_share, found.hidden_share]).all()
    form = erosion_form(network, inputs, spoil * cotangent, throw=False)
    assert bool(form.result == result)
    assert np.isnan(float(form.sequential(rule.feedback)))
    for function in (
        lambda: initial_erosion(network, inputs, spoil * cotangent, rule),
        lambda: erosion_form(network, inputs, spoil * cotangent),
        lambda: erosion_draws(network, inputs, spoil * cotangent, count=2, key=KEY),
    ):
        with pytest.raises(ValueError, match=r"gradients of backpropagation are zero|NaN or infinite"):
            function()


@pytest.mark.parametrize("where", ["weights", "feedback"])
def test_values_that_are_not_finite_never_pass(where):
    network, inputs, cotangent = problem((6, 4))
    rule = FeedbackAlignment.sample(network, key=KEY)
    if where == "weights":
        network = eqx.tree_at(lambda net: net.weights[0], network, network.weights[0].at[0, 0].set(jnp.nan))
    else:
        rule = eqx.tree_at(lambda rule: rule.feedback[0], rule, rule.feedback[0].at[0, 0].set(jnp.inf))
    with pytest.raises(ValueError, match="NaN or infinite"):
        initial_erosion(network, inputs, cotangent, rule)


def test_misfits_are_refused(unchecked):
    network, inputs, cotangent = problem((6, 4))
    form = erosion_form(network, inputs, cotangent)
    rule = FeedbackAlignment.sample(network, key=KEY)
    for match, function in {
        "at least one example": lambda: initial_erosion(network, inputs[:0], cotangent[:0], rule),
        "The cotangent has shape": lambda: erosion_form(network, inputs, cotangent[:, :2]),
        "dtype float64": lambda: erosion_form(network, inputs, cotangent.astype(jnp.float32)),
        "Feedback matrices have shapes": lambda: form.sequential(rule.feedback[::-1]),
        "Direct feedback matrices": lambda: form.direct(rule.feedback),
        "one number per hidden layer": lambda: form.sequential_variance([1.0]),
        "two hidden layers; got 1": lambda: TwoLayerForm.of(erosion_form(*problem((6,)))),
        "method is one of": lambda: erosion_draws(network, inputs, cotangent, count=1, method="slow", key=KEY),
        "Use method='fast'": lambda: erosion_draws(
            network, inputs, cotangent, count=1, method="tensor", direct=True, key=KEY
        ),
        "count": lambda: erosion_draws(network, inputs, cotangent, count=0, key=KEY),
    }.items():
        with pytest.raises(ValueError, match=match):
            function()


def test_works_under_jit_vmap_and_grad():
    network, inputs, cotangent = problem((6, 4), activation=Tanh())
    rule = FeedbackAlignment.sample(network, key=KEY)

    def erosion(cotangent):
        return initial_erosion(network, inputs, cotangent, rule).erosion

    both = jax.jit(jax.vmap(erosion))(jnp.stack([cotangent, 2 * cotangent]))
    np.testing.assert_allclose(both, float(erosion(cotangent)), rtol=1e-12)
    slope = jax.grad(erosion)(cotangent)
    np.testing.assert_allclose(jnp.sum(slope * cotangent), 0, atol=1e-12)  # the scale does not matter
    step = 1e-6 * jnp.cos(jnp.arange(cotangent.size)).reshape(cotangent.shape)
    central = (erosion(cotangent + step) - erosion(cotangent - step)) / 2
    np.testing.assert_allclose(jnp.sum(slope * step), central, rtol=1e-6)
