"""The adjoint recursion against automatic differentiation and against difference quotients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.solver import METHODS, adjoint_gradient, rollout, training_loss

from .systems import plain, relative, systems


def by_autodiff(preconditioner, *system, depth):
    *arguments, solutions = system

    def loss(matrix):
        return jnp.mean((plain(matrix, *arguments, depth=depth) - solutions) ** 2) / 2

    return jax.value_and_grad(loss)(preconditioner)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("tasks", "size", "depth"), [(5, 8, 1), (5, 8, 7), (5, 8, 30), (3, 3, 4)])
def test_equals_automatic_differentiation(tasks, size, depth, shared):
    system = systems(tasks, size, shared=shared, rate=min(0.4, 3 / depth))
    loss, gradient = adjoint_gradient(*system, depth=depth)
    expected_loss, expected = by_autodiff(*system, depth=depth)
    assert gradient.shape == system[0].shape
    assert float(loss) == pytest.approx(float(expected_loss), rel=1e-13)
    assert relative(gradient, expected) <= 1e-13


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_the_same_loss_and_gradient(method):
    system = systems(4, 5, rate=0.1)
    loss, gradient = adjoint_gradient(*system, depth=21, method=method)
    expected_loss, expected = by_autodiff(*system, depth=21)
    assert float(loss) == pytest.approx(float(expected_loss), rel=1e-13)
    assert relative(gradient, expected) <= 1e-13


def test_the_systems_of_this_file_tell_a_missing_transpose():
    preconditioner, operators, right_hand_sides, initial, solutions = systems(5, 8)
    _, gradient = adjoint_gradient(preconditioner, operators, right_hand_sides, initial, solutions, depth=2)
    error = np.asarray(rollout(preconditioner, operators, right_hand_sides, initial, depth=2) - solutions) / 40
    first = np.asarray(right_hand_sides - jnp.einsum("tij,tj->ti", operators, initial))
    residuals = first, first - np.einsum("tij,jk,tk->ti", operators, preconditioner, first)
    iteration = np.eye(8) - np.asarray(preconditioner) @ np.asarray(operators)
    transposed, plain = (np.einsum(axes, iteration, error) for axes in ("tji,tj->ti", "tij,tj->ti"))
    assert relative(transposed.T @ residuals[0] + error.T @ residuals[1], gradient) <= 1e-14
    assert relative(plain.T @ residuals[0] + error.T @ residuals[1], gradient) > 1e-2


@pytest.mark.parametrize("shared", [True, False])
def test_equals_a_difference_quotient(shared):
    system = systems(3, 5, shared=shared)
    direction = jnp.asarray(np.random.default_rng(1).standard_normal(system[0].shape))
    step = 2e-6

    def loss(matrix):
        return adjoint_gradient(matrix, *system[1:], depth=6)[0]

    quotient = (loss(system[0] + step * direction) - loss(system[0] - step * direction)) / (2 * step)
    slope = float((adjoint_gradient(*system, depth=6)[1] * direction).sum())
    assert slope == pytest.approx(float(quotient), rel=1e-8)
    assert abs(slope) > 1e-6


def test_depth_zero_has_no_gradient():
    system = systems(3, 4)
    loss, gradient = adjoint_gradient(*system, depth=0)
    assert float(loss) == pytest.approx(float(training_loss(system[3], system[4])), rel=1e-15)
    assert np.array_equal(gradient, np.zeros((4, 4)))


def test_the_gradient_of_a_shared_preconditioner_is_the_sum_over_tasks():
    preconditioner, *system = systems(4, 5)
    _, shared = adjoint_gradient(preconditioner, *system, depth=5)
    _, separate = adjoint_gradient(jnp.broadcast_to(preconditioner, (4, 5, 5)), *system, depth=5)
    assert relative(separate.sum(axis=0), shared) <= 1e-14


def test_at_the_solution_loss_and_gradient_are_exactly_zero():
    preconditioner, operators, right_hand_sides, _, _ = systems(3, 4)
    whole, solutions = jnp.round(4 * operators), jnp.round(4 * right_hand_sides)
    exact = jnp.einsum("tij,tj->ti", whole, solutions)
    loss, gradient = adjoint_gradient(preconditioner, whole, exact, solutions, solutions, depth=5)
    assert float(loss) == 0
    assert np.array_equal(gradient, np.zeros((4, 4)))


def test_pulls_back_to_parameters_that_depend_on_the_task():
    _, *system = systems(3, 4)
    operators = system[0]

    def preconditioner(theta):
        return theta[0] * jnp.eye(4)[None] + theta[1] * jnp.swapaxes(operators, 1, 2) + theta[2] * operators**2

    theta = jnp.array([0.4, 0.05, -0.03])
    matrices, pull_back = jax.vjp(preconditioner, theta)
    (gradient,) = pull_back(adjoint_gradient(matrices, *system, depth=6)[1])
    arguments, solutions = system[:-1], system[-1]
    expected = jax.grad(lambda t: training_loss(plain(preconditioner(t), *arguments, depth=6), solutions))(theta)
    assert relative(gradient, expected) <= 1e-13


def test_maps_over_preconditioners():
    system = systems(3, 4)
    several = jnp.stack([system[0], 0.5 * system[0], system[0].T])
    losses, gradients = jax.jit(jax.vmap(lambda matrix: adjoint_gradient(matrix, *system[1:], depth=5)))(several)
    for i in range(3):
        loss, gradient = adjoint_gradient(several[i], *system[1:], depth=5)
        assert float(losses[i]) == pytest.approx(float(loss), rel=1e-14)
        assert relative(gradients[i], gradient) <= 1e-14


def test_single_precision_differs_by_its_rounding():
    exact = adjoint_gradient(*systems(16, 12), depth=8)[1]
    rounded = adjoint_gradient(*systems(16, 12, dtype=jnp.float32), depth=8)[1]
    assert rounded.dtype == jnp.float32
    assert 0 < relative(rounded, exact) <= 32 * np.finfo(np.float32).eps


def test_an_underflowed_gradient_is_finite_and_small():
    operators = jnp.diag(jnp.array([1.0, 0.5, 0.25, 0.125]))[None]
    solutions = jnp.array([[1.0, 2.0, -1.0, 3.0]])
    preconditioner = 0.5 * jnp.linalg.inv(operators[0])
    sides = jnp.einsum("tij,tj->ti", operators, solutions)
    loss, gradient = adjoint_gradient(preconditioner, operators, sides, 0 * solutions, solutions, depth=10_000)
    assert float(loss) < 1e-24
    assert float(jnp.abs(gradient).max()) < 1e-12


def test_bad_input_is_refused(unchecked):
    system = systems(3, 3)
    with pytest.raises(ValueError, match="got -1"):
        adjoint_gradient(*system, depth=-1)
    with pytest.raises(ValueError, match=r"solutions \(3, 1\)"):
        adjoint_gradient(*system[:-1], system[-1][:, :1], depth=2)
    with pytest.raises(ValueError, match="solutions float32"):
        adjoint_gradient(*system[:-1], system[-1].astype(jnp.float32), depth=2)
    with pytest.raises(ValueError, match="doubling; got 'reversal'"):
        adjoint_gradient(*system, depth=2, method="reversal")
