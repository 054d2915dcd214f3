"""Loss and gradient of the population against rollouts, explicit sums, automatic differentiation and differences."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.solver import adjoint_gradient, population_gradient, population_loss

from .systems import relative, systems

DEPTHS = [1, 7, 9, 37]


def population(tasks=3, size=4, *, shared=True, rate=0.1):
    preconditioner, operators, *_ = systems(tasks, size, shared=shared, rate=rate)
    root = np.random.default_rng(4).standard_normal((size, size + 1))
    return preconditioner, operators, jnp.asarray(root @ root.T / size)


def explicit(preconditioner, operators, second_moment, depth):
    """The loss and the sum of the gradient, term by term, for every task."""
    tasks, size, _ = operators.shape
    loss, gradients = 0.0, []
    for i, operator in enumerate(np.asarray(operators)):
        matrix = np.asarray(preconditioner if preconditioner.ndim == 2 else preconditioner[i])
        step = np.eye(size) - matrix @ operator
        power = np.linalg.matrix_power(step, depth)
        last = power @ np.asarray(second_moment)
        loss += np.trace(last @ power.T) / (2 * size * tasks)
        terms = [
            np.linalg.matrix_power(step.T, depth - 1 - k) @ last @ np.linalg.matrix_power(step.T, k)
            for k in range(depth)
        ]
        gradients.append(-sum(terms) @ operator.T / (size * tasks))
    return loss, np.sum(gradients, axis=0) if preconditioner.ndim == 2 else np.array(gradients)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("depth", DEPTHS)
def test_equals_the_sum_written_out_and_automatic_differentiation(depth, shared):
    arguments = population(shared=shared)
    loss, gradient = population_gradient(*arguments, depth=depth)
    expected_loss, expected = explicit(*arguments, depth)
    assert gradient.shape == arguments[0].shape
    assert float(loss) == pytest.approx(expected_loss, rel=1e-13)
    assert float(population_loss(*arguments, depth=depth)) == pytest.approx(expected_loss, rel=1e-13)
    assert relative(gradient, expected) <= 1e-13
    assert relative(gradient, jax.grad(partial(population_loss, depth=depth))(*arguments)) <= 1e-13


@pytest.mark.parametrize("depth", [5, 21])
def test_equals_the_mean_over_first_errors_of_the_training_loss(depth):
    preconditioner, operators, right_hand_sides, _, solutions = systems(3, 4, rate=0.1)
    errors = jnp.asarray(np.random.default_rng(5).standard_normal((6, 4)))
    results = [
        adjoint_gradient(preconditioner, operators, right_hand_sides, solutions + error[None], solutions, depth=depth)
        for error in errors
    ]
    second_moment = errors.T @ errors / 6
    loss, gradient = population_gradient(preconditioner, operators, second_moment, depth=depth)
    assert float(loss) == pytest.approx(float(np.mean([result[0] for result in results])), rel=1e-13)
    assert relative(gradient, np.mean([result[1] for result in results], axis=0)) <= 1e-13


@pytest.mark.parametrize("depth", [6, 20])
def test_equals_a_difference_quotient(depth):
    preconditioner, *others = population()
    direction = jnp.asarray(np.random.default_rng(1).standard_normal((4, 4)))
    step = 2e-6
    ends = [population_loss(preconditioner + sign * step * direction, *others, depth=depth) for sign in (1, -1)]
    slope = jnp.sum(population_gradient(preconditioner, *others, depth=depth)[1] * direction)
    assert float(slope) == pytest.approx(float(ends[0] - ends[1]) / (2 * step), rel=1e-8)


def test_a_single_step_is_trained_by_a_linear_law():
    """With one step the loss is quadratic in `P`: `P_s − P* = (P_0 − P*) (I − η C)^s`, `C = E[H S Hᵀ] / K`."""
    preconditioner, operators, second_moment = population(tasks=4)
    curvature = jnp.einsum("tij,jk,tlk->il", operators, second_moment, operators) / 16
    optimum = jnp.linalg.solve(curvature.T, jnp.einsum("ij,tkj->ki", second_moment, operators) / 16).T
    state = preconditioner
    for _ in range(20):
        state = state - 0.2 * population_gradient(state, operators, second_moment, depth=1)[1]
    power = jnp.linalg.matrix_power(jnp.eye(4) - 0.2 * curvature, 20)
    assert relative(state - optimum, (preconditioner - optimum) @ power) <= 1e-12


def test_only_the_symmetric_part_of_the_moment_enters():
    preconditioner, operators, second_moment = population()
    skew = jnp.triu(jnp.ones((4, 4)), 1) - jnp.tril(jnp.ones((4, 4)), -1)
    expected = population_gradient(preconditioner, operators, second_moment, depth=3)
    found = population_gradient(preconditioner, operators, second_moment + skew, depth=3)
    assert float(found[0]) == pytest.approx(float(expected[0]), rel=1e-13)
    assert relative(found[1], expected[1]) <= 1e-13
    autodiff = jax.grad(partial(population_loss, depth=3))(preconditioner, operators, second_moment + skew)
    assert relative(autodiff, expected[1]) <= 1e-13


def test_depth_zero_has_half_the_trace_and_no_gradient():
    preconditioner, operators, second_moment = population()
    loss, gradient = population_gradient(preconditioner, operators, second_moment, depth=0)
    assert float(loss) == pytest.approx(float(jnp.trace(second_moment)) / 8, rel=1e-15)
    assert float(population_loss(preconditioner, operators, second_moment, depth=0)) == pytest.approx(float(loss))
    assert np.array_equal(gradient, np.zeros((4, 4)))


def test_a_depth_of_thousands_is_exact_before_the_error_underflows():
    arguments = population(rate=5e-4)
    loss, gradient = population_gradient(*arguments, depth=4096)
    expected = jax.grad(partial(population_loss, depth=4096))(*arguments)
    assert float(loss) > 1e-4
    assert relative(gradient, expected) <= 1e-11


def test_many_tasks_of_a_size_that_runs_in_blocks():
    preconditioner, operators, second_moment = population(tasks=9, size=48)
    _, gradient = population_gradient(preconditioner, operators, second_moment, depth=3)
    assert relative(gradient, explicit(preconditioner, operators, second_moment, 3)[1]) <= 1e-13


@pytest.mark.parametrize("depth", [4, 20])
def test_single_precision_and_maps(depth):
    preconditioner, *others = population()
    exact = population_gradient(preconditioner, *others, depth=depth)[1]
    rounded = population_gradient(*(a.astype(jnp.float32) for a in (preconditioner, *others)), depth=depth)[1]
    assert rounded.dtype == jnp.float32
    assert 0 < relative(rounded, exact) <= 1e-5
    several = jnp.stack([preconditioner, preconditioner.T])
    mapped = jax.vmap(lambda matrix: population_gradient(matrix, *others, depth=depth)[1])(several)
    assert relative(mapped[0], exact) <= 1e-14


def test_bad_input_is_refused(unchecked):
    preconditioner, operators, second_moment = population()
    for function in (population_loss, population_gradient):
        with pytest.raises(ValueError, match="got -1"):
            function(preconditioner, operators, second_moment, depth=-1)
        with pytest.raises(ValueError, match=r"second moment of shape \(4, 4\).*second_moment \(3, 4, 4\)"):
            function(preconditioner, operators, operators, depth=1)
        with pytest.raises(ValueError, match="task axis in front"):
            function(preconditioner, operators[0], second_moment, depth=1)
        with pytest.raises(ValueError, match="at least one task"):
            function(preconditioner, operators[:0], second_moment, depth=1)
        with pytest.raises(ValueError, match="second_moment float32"):
            function(preconditioner, operators, second_moment.astype(jnp.float32), depth=1)
