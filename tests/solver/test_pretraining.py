"""Training a preconditioner, and the operators it is trained on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxsolve.preconditioners import FreeLinear, LinearAttention, position_tokens
from jaxsolve.solver import adjoint_gradient, pretrain, rollout, training_loss, wishart_operators

TASKS, SIZE, DEPTH = 5, 4, 3
RANDOM = np.random.default_rng(0)
OPERATORS = jnp.asarray(wishart_operators(RANDOM.standard_normal((TASKS, SIZE, 12)), np.linspace(0.2, 1, SIZE)))
SOLUTIONS = jnp.asarray(RANDOM.standard_normal((TASKS, SIZE)))
SIDES = jnp.einsum("tij,tj->ti", OPERATORS, SOLUTIONS)
SYSTEMS = (OPERATORS, SIDES, jnp.zeros_like(SOLUTIONS), SOLUTIONS)


def test_a_step_is_that_of_the_adjoint_gradient():
    loss, gradient = adjoint_gradient(jnp.eye(SIZE), *SYSTEMS, depth=DEPTH)
    run = pretrain(FreeLinear.initialise(SIZE), *SYSTEMS, depth=DEPTH, optimizer=optax.sgd(0.5), steps=1)
    assert float(jnp.linalg.norm(gradient)) > 0.01
    np.testing.assert_allclose(run.parameters.entries, jnp.eye(SIZE) - 0.5 * gradient, rtol=0, atol=1e-14)
    np.testing.assert_allclose(run.losses[0], loss, rtol=1e-13)


def test_attention_learns_and_its_tokens_stay():
    tokens, random = position_tokens(SIZE), np.random.default_rng(1)
    weights = random.standard_normal((2, 2, tokens.shape[1], 3))
    start = LinearAttention(tokens, *weights, np.full(2, 0.05), np.asarray(1.0))
    run = pretrain(start, *SYSTEMS, depth=DEPTH, optimizer=optax.adam(0.02), steps=60)
    assert jnp.array_equal(run.parameters.tokens, tokens)
    matrix = run.parameters.matrix(OPERATORS)
    final = training_loss(rollout(matrix, *SYSTEMS[:3], depth=DEPTH), SOLUTIONS)
    assert float(final) < 0.5 * float(run.losses[0])
    moved = jax.tree.map(lambda one, other: not jnp.array_equal(one, other), run.parameters, start)
    assert all(jax.tree.leaves(eqx.filter(moved, start.trainable())))


def test_divergence_is_raised():
    with pytest.raises(ValueError, match="of 30 steps"):
        pretrain(FreeLinear.initialise(SIZE), *SYSTEMS, depth=DEPTH, optimizer=optax.sgd(1e6), steps=30)


def test_wishart_operators_have_their_mean_and_second_moment():
    """`E[H] = S` and `E[H²] = S² (1 + 1/n) + S Tr(S) / n`, within five standard errors."""
    count, freedom, spectrum = 20_000, 6, np.array([0.3, 1.0, 2.0])
    operators = wishart_operators(np.random.default_rng(2).standard_normal((count, 3, freedom)), spectrum)
    assert isinstance(operators, np.ndarray)
    second = np.diag(spectrum**2 * (1 + 1 / freedom) + spectrum * spectrum.sum() / freedom)
    for values, expected in ((operators, np.diag(spectrum)), (operators @ operators, second)):
        error = values.std(axis=0) / count**0.5
        assert (np.abs(values.mean(axis=0) - expected) < 5 * error).all()
    assert np.linalg.eigvalsh(operators).min() > 0


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_wishart_operators_keep_the_dtype(dtype):
    factors = jnp.asarray(np.random.default_rng(3).standard_normal((2, 3, 4)), dtype)
    operators = wishart_operators(factors, jnp.ones(3, dtype))
    assert operators.dtype == dtype
    np.testing.assert_allclose(operators[0], np.asarray(factors[0] @ factors[0].T) / 4, rtol=1e-5)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("shape", "size"), [((3, 4), 3), ((2, 3, 4), 4), ((0, 3, 4), 3)])
def test_factors_that_do_not_fit_are_refused(shape, size):
    with pytest.raises(ValueError, match="degrees of freedom"):
        wishart_operators(np.ones(shape), np.ones(size))
