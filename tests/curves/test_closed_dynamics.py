"""Closed dynamics of a preconditioner: one step, common eigenvectors, commutants, and flows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from jaxsolve._results import RESULTS
from jaxsolve.curves import (
    CyclicSymmetry,
    OneStepMoments,
    OrthogonalSymmetry,
    SignSymmetry,
    commutant_descent,
    commuting_descent,
    commuting_flow,
    commuting_gradient,
    commuting_loss,
    commuting_optimum,
    integrate,
    one_step_descent,
    one_step_flow,
    one_step_mode_flow,
    one_step_moments,
    periodic_diffusion,
    population_descent,
    wishart_one_step_moments,
)
from jaxsolve.solver import population_gradient, population_loss

RATE = jnp.array(0.3)


def relative(found, reference):
    return np.linalg.norm(np.asarray(found) - np.asarray(reference)) / np.linalg.norm(reference)


@pytest.fixture(scope="module")
def tasks():
    random = np.random.default_rng(0)
    operators = np.eye(3) + 0.4 * random.standard_normal((5, 3, 3))
    root = random.standard_normal((3, 3))
    return jnp.asarray(operators), jnp.asarray(root @ root.T), jnp.asarray(random.standard_normal((3, 3)))


def test_one_step_has_an_affine_gradient(tasks):
    operators, second_moment, matrix = tasks
    moments = one_step_moments(operators, second_moment)
    _, gradient = population_gradient(matrix, operators, second_moment, depth=1)
    assert relative(matrix @ moments.curvature - moments.slope, gradient) <= 1e-14
    skew = jnp.triu(jnp.ones((3, 3)), 1) - jnp.tril(jnp.ones((3, 3)), -1)
    assert relative(one_step_moments(operators, second_moment + skew).slope, moments.slope) <= 1e-14


def test_one_step_closes_in_steps_and_in_time(tasks):
    operators, second_moment, start = tasks
    moments = one_step_moments(operators, second_moment)
    curvature, slope = map(np.asarray, moments)
    optimum = slope @ np.linalg.inv(curvature)
    steps = jnp.array([0, 1, 7, 100])
    curve = one_step_descent(start, moments, learning_rate=RATE, steps=steps)
    path = population_descent(start, operators, second_moment, depth=1, learning_rate=RATE, steps=100)
    assert bool(curve.stable)
    assert relative(curve.preconditioner, path[steps]) <= 1e-12
    times = np.array([0.0, 0.3, 40.0])
    for time, flow in zip(times, one_step_flow(start, moments, times=jnp.asarray(times)), strict=True):
        expected = optimum + (np.asarray(start) - optimum) @ scipy.linalg.expm(-time * curvature)
        assert relative(flow, expected) <= 1e-12
    assert not one_step_descent(start, moments, learning_rate=jnp.array(50.0), steps=steps).stable


def test_directions_that_no_task_sees_stay():
    moments = OneStepMoments(jnp.diag(jnp.array([1.0, 0.0])), jnp.diag(jnp.array([2.0, 0.0])))
    start = jnp.array([[0.0, 3.0], [0.0, 4.0]])
    far = one_step_flow(start, moments, times=jnp.array([1e9]))[0]
    np.testing.assert_allclose(far, [[2.0, 3.0], [0.0, 4.0]], rtol=1e-14)
    steps = one_step_descent(start, moments, learning_rate=RATE, steps=jnp.array([10**6]))
    np.testing.assert_allclose(steps.preconditioner[0], far, rtol=1e-12)


def test_wishart_moments_of_one_step_are_means_of_draws():
    random = np.random.default_rng(1)
    root, second = random.standard_normal((2, 3, 3))
    covariance, second_moment = root @ root.T / 3, second @ second.T
    vectors = random.standard_normal((40_000, 2, 3)) @ root.T / 3**0.5
    operators = np.einsum("tni,tnj->tij", vectors, vectors) / 2
    expected = one_step_moments(jnp.asarray(operators), jnp.asarray(second_moment))
    found = wishart_one_step_moments(jnp.asarray(covariance), jnp.asarray(second_moment), freedom=jnp.array(2.0))
    assert relative(found.slope, expected.slope) <= 2e-2
    assert relative(found.curvature, expected.curvature) <= 3e-2
    wrong = wishart_one_step_moments(jnp.asarray(covariance), jnp.asarray(second_moment), freedom=jnp.array(3.0))
    assert relative(wrong.curvature, expected.curvature) > 5e-2


def test_modes_with_rates_of_twelve_orders():
    eigenvalues = jnp.logspace(-3, 3, 7)
    one = jnp.ones(7)
    for time in (1e-7, 1.0, 1e7):
        found = one_step_mode_flow(0 * one, eigenvalues, one, time=jnp.array(time))
        np.testing.assert_allclose(found, -np.expm1(-(np.asarray(eigenvalues) ** 2) * time) / eigenvalues, rtol=1e-13)
    started = one_step_mode_flow(0.5 * one, jnp.zeros(7), one, time=jnp.array(3.0))
    assert (started == 0.5).all()
    stiff = commuting_flow(jnp.zeros(7), eigenvalues[None], 7 * one, depth=1, times=jnp.array([1e-3, 1.0]))
    exact = one_step_mode_flow(0 * one, eigenvalues, one, time=jnp.array(1.0))
    np.testing.assert_allclose(stiff.states[1], exact, rtol=1e-7)


@pytest.mark.parametrize("times", [[-1.0], [1.0, 0.5], [np.nan]])
def test_times_that_run_backwards_are_refused(times):
    with pytest.raises(ValueError, match="negative"):
        integrate(lambda time, state: -state, jnp.ones(1), times=jnp.array(times))


def test_a_solution_that_escapes_is_reported():
    escaping = {"vector_field": lambda time, state: state**2, "initial": jnp.ones(1), "times": jnp.array([2.0])}
    with pytest.raises(ValueError, match="stopped before its last time"):
        integrate(**escaping, max_steps=64)
    flow = integrate(**escaping, max_steps=64, throw=False)
    assert not (flow.result == RESULTS.successful).any()


def test_negative_steps_and_times_of_one_step_are_refused(tasks):
    moments, one = one_step_moments(*tasks[:2]), jnp.ones(1)
    with pytest.raises(ValueError, match="negative"):
        one_step_descent(tasks[2], moments, learning_rate=RATE, steps=jnp.array([-1]))
    with pytest.raises(ValueError, match="negative"):
        one_step_flow(tasks[2], moments, times=jnp.array([-1.0]))
    with pytest.raises(ValueError, match="negative"):
        one_step_mode_flow(one, one, one, time=jnp.array(-1.0))


@pytest.mark.parametrize("depth", [1, 4])
def test_common_eigenvectors_train_by_modes(depth):
    random = np.random.default_rng(2)
    eigenvalues = jnp.asarray(random.uniform(0.2, 1.3, (6, 4)))
    second, gains = jnp.asarray(random.uniform(0.5, 2, 4)), jnp.asarray(random.uniform(0.2, 0.6, 4))
    operators = jax.vmap(jnp.diag)(eigenvalues)
    loss, gradient = population_gradient(jnp.diag(gains), operators, jnp.diag(second), depth=depth)
    arguments = (eigenvalues, second)
    assert float(commuting_loss(gains, *arguments, depth=depth)) == pytest.approx(float(loss), rel=1e-13)
    assert relative(jnp.diag(commuting_gradient(gains, *arguments, depth=depth)), gradient) <= 1e-13
    shares = jnp.asarray([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    weighted = commuting_gradient(gains, *arguments, depth=depth, weights=shares)
    assert relative(weighted, jax.grad(commuting_loss)(gains, *arguments, depth=depth, weights=shares)) <= 1e-13
    path = commuting_descent(gains, *arguments, depth=depth, learning_rate=RATE, steps=50)
    full = population_descent(jnp.diag(gains), operators, jnp.diag(second), depth=depth, learning_rate=RATE, steps=50)
    assert relative(jax.vmap(jnp.diag)(path), full) <= 1e-12


def test_the_optimum_has_no_gradient_and_needs_positive_eigenvalues():
    eigenvalues = jnp.asarray(np.random.default_rng(3).uniform(0.1, 3, (9, 5)))
    gains = commuting_optimum(eigenvalues, depth=5)
    at_optimum = commuting_gradient(gains, eigenvalues, jnp.ones(5), depth=5)
    assert (
        np.abs(at_optimum).max()
        <= 1e-13 * np.abs(commuting_gradient(0 * gains, eigenvalues, jnp.ones(5), depth=5)).max()
    )
    with pytest.raises(ValueError, match="not positive"):
        commuting_optimum(-eigenvalues, depth=2)


@pytest.mark.parametrize("symmetry", [SignSymmetry(4), CyclicSymmetry(5), OrthogonalSymmetry(3)])
def test_the_symmetry_theorem(symmetry):
    random = np.random.default_rng(4)
    size, elements = symmetry.size, symmetry.elements()
    matrix, factor = jnp.asarray(random.standard_normal((2, size, size)))
    assert (
        relative(symmetry.project(matrix), jnp.einsum("gij,jk,glk->il", elements, matrix, elements) / len(elements))
        <= 1e-14
    )
    raw = jnp.eye(size)[None] + 0.3 * jnp.asarray(random.standard_normal((2, size, size)))
    operators = symmetry.symmetrise(raw)
    second = symmetry.project(factor @ factor.T)
    loss, gradient = population_gradient(matrix, operators, second, depth=3)
    moved = elements[1] @ matrix @ elements[1].T
    assert float(population_loss(moved, operators, second, depth=3)) == pytest.approx(float(loss), rel=1e-12)
    moved_gradient = population_gradient(moved, operators, second, depth=3)[1]
    assert relative(moved_gradient, elements[1] @ gradient @ elements[1].T) <= 1e-12
    assert relative(population_gradient(moved, raw, second, depth=3)[1], moved_gradient) > 1e-2
    start = symmetry.coordinates(0.4 * jnp.eye(size))
    training = {"depth": 3, "learning_rate": jnp.array(0.1), "steps": 40}
    path = commutant_descent(symmetry, start, raw, second, **training)
    full = population_descent(symmetry.matrix(start), operators, second, **training)
    assert relative(jax.vmap(symmetry.matrix)(path), full) <= 1e-12


def test_reflections_halve_the_coordinates_of_a_ring():
    coefficients = jnp.asarray(np.random.default_rng(5).uniform(0.1, 0.5, (3, 6)))
    operators = periodic_diffusion(jnp.concatenate([coefficients, coefficients[:, ::-1]]), reaction=0.3)
    start = jnp.array([0.5, 0.1, 0.02, 0.0, 0.02, 0.1])
    path = commutant_descent(
        CyclicSymmetry(6), start, operators, jnp.eye(6), depth=3, learning_rate=jnp.array(0.2), steps=30
    )
    np.testing.assert_allclose(path[:, 1:], path[:, :0:-1], atol=1e-14)
    assert np.abs(path[-1] - start).max() > 1e-2


def test_shapes_that_do_not_fit_are_refused(unchecked):
    one = jnp.ones(2)
    with pytest.raises(ValueError, match="draws, size"):
        commuting_loss(one, jnp.ones((3, 4)), one, depth=1)
    with pytest.raises(ValueError, match="at least one step"):
        commuting_loss(one, jnp.ones((3, 2)), one, depth=0)
    with pytest.raises(ValueError, match="one second moment"):
        one_step_moments(jnp.ones((2, 3, 3)), jnp.eye(2))
    with pytest.raises(ValueError, match="power of two"):
        SignSymmetry(3)
