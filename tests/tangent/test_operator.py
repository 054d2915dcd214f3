"""Products with a kernel that is not formed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
import numpy as np
import pytest

from jaxsolve.feedback import Backprop, ConvolutionalNetwork, FeedbackAlignment
from jaxsolve.tangent import choose_form, kernel, operator

from .test_kernel import alternatives, jacobian, problem, relative


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("examples", [1, 4, 40])
def test_the_operator_is_the_kernel(use_bias, examples):
    """Few examples take Gram matrices, many take products with activations; both are there at 14 and 40."""
    network, inputs = problem((5, 8, 7, 3), examples=examples, use_bias=use_bias, activation="tanh")
    for rule in (Backprop(), *alternatives(network)):
        found, expected = operator(network, inputs, rule), kernel(network, inputs, rule)
        assert relative(found.as_matrix(), expected) < 1e-14
        assert relative(found.T.as_matrix(), expected.T) < 1e-14


@pytest.mark.parametrize("use_bias", [False, True])
def test_convolutions_have_the_kernel_of_their_jacobian(use_bias):
    network = ConvolutionalNetwork.initialise(
        (2, 6, 5), channels=(3, 4), outputs=2, hidden=(7,), use_bias=use_bias, key=jax.random.key(4)
    )
    inputs = jnp.asarray(np.random.default_rng(6).standard_normal((5, 2, 6, 5)))
    rows = jacobian(network, inputs)
    assert relative(kernel(network, inputs), rows @ rows.T) < 1e-13
    assert relative(kernel(network, inputs, block=2), rows @ rows.T) < 1e-13
    rule = FeedbackAlignment.sample(network, key=jax.random.key(5))
    expected = kernel(network, inputs, rule)
    assert relative(expected.T, expected) > 1e-2
    for one in (Backprop(), rule):
        assert relative(operator(network, inputs, one).as_matrix(), kernel(network, inputs, one)) < 1e-13


def test_only_backpropagation_is_symmetric():
    network, inputs = problem((5, 8, 7, 3))
    assert lineax.is_symmetric(operator(network, inputs))
    assert lineax.is_positive_semidefinite(operator(network, inputs))
    assert not any(lineax.is_symmetric(operator(network, inputs, rule)) for rule in alternatives(network))


def test_a_solver_of_lineax_solves_with_it():
    network, inputs = problem((5, 60, 3), examples=6, activation="tanh")
    right = jnp.asarray(np.random.default_rng(3).standard_normal(18))
    solution = lineax.linear_solve(operator(network, inputs), right, lineax.CG(rtol=1e-12, atol=1e-12)).value
    assert relative(kernel(network, inputs) @ solution, right) < 1e-9


def test_products_under_jit_and_for_many_vectors():
    network, inputs = problem((5, 8, 7, 3))
    rule = alternatives(network)[1]
    vectors = jnp.asarray(np.random.default_rng(5).standard_normal((6, 12)))

    @jax.jit
    def products(network, vectors):
        return jax.vmap(operator(network, inputs, rule).mv)(vectors)

    assert relative(products(network, vectors), vectors @ kernel(network, inputs, rule).T) < 1e-14


def test_nothing_of_the_size_of_the_kernel_is_kept():
    network, inputs = problem((5, 30, 30, 4), examples=200)
    largest = max(leaf.size for leaf in jax.tree.leaves(eqx.filter(operator(network, inputs), eqx.is_array)))
    assert largest <= 200 * 31
    assert largest < kernel(network, inputs).size / 100


def test_the_form_is_chosen_by_counting():
    network, _ = problem((16, 64, 64, 10))
    assert choose_form(network, 512, 10**6) == "matrix_free"
    few = [choose_form(problem((16, 256, 256, 4))[0], 128, products) for products in (1, 100)]
    assert few == ["matrix_free", "dense"]


def test_misfits_are_refused(unchecked):
    network, inputs = problem((5, 8, 7, 3))
    with pytest.raises(ValueError, match=r"got \(4, 4\)"):
        operator(network, inputs[:, :4])
