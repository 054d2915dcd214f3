"""The tangent kernel, as laws: against explicit Jacobians, as the operator of an update, and at the edges."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.feedback import MLP, Backprop, DirectFeedbackAlignment, FeedbackAlignment, Gelu, Identity, Relu, Tanh
from jaxsolve.tangent import kernel, kernel_bytes, operator

ACTIVATIONS = {"relu": Relu(), "tanh": Tanh(), "gelu": Gelu(), "identity": Identity()}


def problem(widths, *, examples=4, activation="relu", use_bias=False, dtype=jnp.float64):
    generator = np.random.default_rng(len(widths))
    weights = [generator.standard_normal(shape).T / np.sqrt(shape[0]) for shape in pairwise(widths)]
    biases = [generator.standard_normal(width) for width in widths[1:]]
    network = MLP(weights, biases if use_bias else None, ACTIVATIONS[activation])
    inputs = jnp.asarray(generator.standard_normal((examples, widths[0])), dtype)
    return jax.tree.map(lambda leaf: leaf.astype(dtype), network), inputs


def alternatives(network):
    generator = np.random.default_rng(3)
    hidden, last = network.widths[1:-1], network.widths[-1]
    sequential = [generator.standard_normal(shape) for shape in pairwise((*hidden, last))]
    direct = [generator.standard_normal((width, last)) for width in hidden]
    rules = FeedbackAlignment(sequential), DirectFeedbackAlignment(direct)
    return jax.tree.map(lambda leaf: leaf.astype(network.dtype), rules)


def jacobian(network, inputs):
    rows = jax.jit(jax.jacrev(lambda network: network(inputs).ravel()))(network)
    return jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(rows)], axis=1)


def relative(measured, expected):
    return float(jnp.linalg.norm(measured - expected) / jnp.linalg.norm(expected))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("widths", "use_bias"), [((5, 8, 7, 3), False), ((5, 8, 7, 3), True), ((6, 4), True)])
def test_backprop_gives_the_product_of_jacobians(activation, widths, use_bias):
    network, inputs = problem(widths, activation=activation, use_bias=use_bias)
    rows = jacobian(network, inputs)
    measured = kernel(network, inputs, Backprop())
    assert relative(measured, rows @ rows.T) < 1e-14
    assert float(jnp.linalg.eigvalsh(measured)[0]) > -1e-13 * float(measured.trace())


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("index", range(3))
def test_the_kernel_is_the_operator_of_an_update(index, use_bias):
    """`K r` is the derivative of the outputs along the direction that the rule gives for the residual `r`."""
    network, inputs = problem((5, 8, 7, 3), use_bias=use_bias)
    rule = (Backprop(), *alternatives(network))[index]
    residual = jnp.asarray(np.random.default_rng(9).standard_normal((4, 3)))
    update = rule.gradients(network, network.forward(inputs), residual)
    _, change = jax.jvp(lambda network: network(inputs), (network,), (update,))
    assert relative(kernel(network, inputs, rule) @ residual.ravel(), change.ravel()) < 1e-14


def test_the_alternatives_are_not_symmetric_and_have_the_same_output_term():
    network, inputs = problem((5, 8, 7, 3))
    hidden = network.forward(inputs).activations[-1]
    output_term = jnp.kron(hidden @ hidden.T, jnp.eye(3))
    exact = kernel(network, inputs, Backprop())
    for rule in alternatives(network):
        measured = kernel(network, inputs, rule)
        assert relative(measured.T, measured) > 0.1
        silent = jax.tree.map(jnp.zeros_like, rule)
        assert relative(kernel(network, inputs, silent), output_term) < 1e-15
        assert relative(exact, output_term) > 0.1


def test_transposed_weights_give_the_kernel_of_backprop():
    network, inputs = problem((5, 8, 7, 3), activation="tanh")
    aligned = FeedbackAlignment([weight.T for weight in network.weights[1:]])
    assert relative(kernel(network, inputs, aligned), kernel(network, inputs, Backprop())) < 1e-15


def test_examples_stand_before_outputs():
    network, inputs = problem((5, 8, 7, 3), activation="tanh")
    rule = alternatives(network)[0]
    whole = kernel(network, inputs, rule).reshape(4, 3, 4, 3)
    order = jnp.array([2, 0, 3, 1])
    permuted = kernel(network, inputs[order], rule).reshape(4, 3, 4, 3)
    np.testing.assert_allclose(permuted, whole[order][:, :, order], rtol=1e-12, atol=1e-13)
    part = kernel(network, inputs[1:3], rule).reshape(2, 3, 2, 3)
    np.testing.assert_allclose(part, whole[1:3, :, 1:3], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("examples", [0, 1, 3])
@pytest.mark.parametrize("outputs", [1, 2])
def test_few_examples_and_one_output(examples, outputs):
    network, inputs = problem((4, 6, outputs), examples=examples, use_bias=True)
    for rule in (Backprop(), *alternatives(network)):
        assert kernel(network, inputs, rule).shape == (examples * outputs, examples * outputs)
    if examples:
        rows = jacobian(network, inputs)
        assert relative(kernel(network, inputs, Backprop()), rows @ rows.T) < 1e-14


def test_single_precision_stays_single():
    network, inputs = problem((5, 40, 30, 3), dtype=jnp.float32)
    double, double_inputs = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), (network, inputs))
    for rule, reference in zip(alternatives(network), alternatives(double), strict=True):
        measured = kernel(network, inputs, rule)
        assert measured.dtype == jnp.float32
        rounded = jax.tree.map(lambda leaf: leaf.astype(jnp.float32).astype(jnp.float64), reference)
        assert relative(measured.astype(jnp.float64), kernel(double, double_inputs, rounded)) < 2e-6


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_broken_example_stays_in_its_rows_and_columns(value):
    network, inputs = problem((5, 8, 7, 3))
    broken = inputs.at[1, 2].set(value)
    for rule in (Backprop(), *alternatives(network)):
        sound, measured = (kernel(network, data, rule).reshape(4, 3, 4, 3) for data in (inputs, broken))
        keep = jnp.array([0, 2, 3])
        np.testing.assert_allclose(measured[keep][:, :, keep], sound[keep][:, :, keep], rtol=1e-12, atol=1e-13)
        assert not jnp.isfinite(measured[1, :, 1]).any()


def test_arrays_of_any_layout_and_integers():
    network, inputs = problem((5, 8, 3), activation="tanh")
    expected = kernel(network, inputs, Backprop())
    backwards = kernel(network, np.asfortranarray(inputs)[::-1], Backprop())
    np.testing.assert_allclose(
        backwards[::-1, ::-1].reshape(4, 3, 4, 3)[:, ::-1, :, ::-1], expected.reshape(4, 3, 4, 3)
    )
    integers = np.arange(10).reshape(2, 5)
    assert jnp.array_equal(kernel(network, integers, Backprop()), kernel(network, integers.astype(float), Backprop()))


@pytest.mark.parametrize("block", [1, 3, 7, 14, 50])
def test_the_value_does_not_depend_on_the_tiles(block):
    network, inputs = problem((5, 8, 7, 3), examples=14, use_bias=True)
    for rule in (Backprop(), *alternatives(network)):
        assert relative(kernel(network, inputs, rule, block=block), kernel(network, inputs, rule)) < 1e-15


def test_rows_and_columns_from_two_sets_of_examples():
    network, inputs = problem((5, 8, 7, 3), examples=9)
    for rule in (Backprop(), *alternatives(network)):
        whole = kernel(network, inputs, rule)
        for block in (None, 2):
            cross = kernel(network, inputs[:4], rule, other_inputs=inputs[2:], block=block)
            assert relative(cross, whole[:12, 6:]) < 1e-15
        assert kernel(network, inputs[:0], rule, other_inputs=inputs).shape == (0, 27)
        assert kernel(network, inputs, rule, other_inputs=inputs[:0], block=2).shape == (27, 0)


def test_the_memory_of_an_old_kernel_is_reused():
    network, inputs = problem((5, 8, 7, 3), examples=9)
    for rule in (Backprop(), alternatives(network)[0]):
        old = kernel(network, 2 * inputs, rule)
        address = old.unsafe_buffer_pointer()
        renewed = kernel(network, inputs, rule, out=old)
        assert relative(renewed, kernel(network, inputs, rule)) < 1e-15
        assert renewed.unsafe_buffer_pointer() == address
        assert old.is_deleted()


def test_kernels_by_tiles_are_transformed():
    network, inputs = problem((5, 8, 3), examples=6)
    rule = alternatives(network)[0]
    several = jax.vmap(lambda data: kernel(network, data, rule, block=2))(jnp.stack([inputs, -inputs]))
    assert relative(several[1], kernel(network, -inputs, rule)) < 1e-15
    by_tiles, whole = (
        jax.grad(lambda network, block=block: jnp.sum(kernel(network, inputs, rule, block=block) ** 2))(network)
        for block in (2, 6)
    )
    assert relative(by_tiles.weights[0], whole.weights[0]) < 1e-13


def test_a_kernel_that_does_not_fit_is_refused_before_it_is_made(unchecked):
    network, _ = problem((5, 8, 7, 3))
    inputs = jax.ShapeDtypeStruct((10**7, 5), jnp.float64)
    with pytest.raises(ValueError, match=r"GiB, and .* are free.*jaxsolve\.tangent\.operator"):
        jax.eval_shape(kernel, network, inputs)
    assert kernel_bytes(network, 1000) > 8 * 3000**2


def test_no_jacobian_is_formed():
    network, inputs = problem((30, 200, 150, 2), examples=6)
    parameters = sum(leaf.size for leaf in jax.tree.leaves(network))
    for rule in (Backprop(), *alternatives(network)):
        jaxpr = jax.make_jaxpr(kernel)(network, inputs, rule)
        largest = max(variable.aval.size for equation in _equations(jaxpr.jaxpr) for variable in equation.outvars)
        assert largest <= parameters
        assert 12 * parameters > 10 * largest


def _equations(jaxpr):
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            if hasattr(value, "jaxpr"):
                yield from _equations(value.jaxpr)


def test_a_matrix_used_twice_is_two_parameters():
    """The layerwise sum has no cross terms between two uses of one matrix; the kernel of the tied network has."""
    shared, last = np.random.default_rng(0).standard_normal((2, 5, 5))
    inputs = jnp.asarray(np.random.default_rng(1).standard_normal((3, 5)))
    untied = kernel(MLP([shared, shared, last], activation=Tanh()), inputs, Backprop())
    rows = jacobian(MLP([shared, shared, last], activation=Tanh()), inputs)
    first, second, output = rows[:, :25], rows[:, 25:50], rows[:, 50:]
    tied = (first + second) @ (first + second).T + output @ output.T
    assert relative(untied, first @ first.T + second @ second.T + output @ output.T) < 1e-14
    assert relative(untied, tied) > 0.1


def test_parameters_that_are_not_finite_are_named():
    network, inputs = problem((5, 8, 7, 3))
    broken = MLP([network.weights[0], network.weights[1].at[2, 3].set(jnp.nan), network.weights[2]])
    for make in (kernel, operator):
        with pytest.raises(ValueError, match=r"\.weights\[1\] of MLP and Backprop hold values that are not finite"):
            make(broken, inputs)
    sequential, _ = alternatives(network)
    endless = FeedbackAlignment([sequential.feedback[0], jnp.full((7, 3), jnp.inf)])
    with pytest.raises(ValueError, match=r"\.feedback\[1\] of MLP and FeedbackAlignment"):
        kernel(network, inputs, endless)


def test_misfits_are_refused(unchecked):
    network, inputs = problem((5, 8, 7, 3))
    with pytest.raises(ValueError, match=r"\(examples, 5\).*got \(4, 4\)"):
        kernel(network, inputs[:, :4], Backprop())
    with pytest.raises(ValueError, match="hidden layer 1 has shape"):
        kernel(network, inputs, FeedbackAlignment([jnp.ones((7, 8)), jnp.ones((7, 3))]))
    with pytest.raises(ValueError, match="at least one example; got 0"):
        kernel(network, inputs, block=0)
    with pytest.raises(ValueError, match=r"out has shape \(12, 12\)"):
        kernel(network, inputs, out=jnp.zeros((3, 3)))
