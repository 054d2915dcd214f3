"""Linearised curves against descent, and the tasks on which they are compared."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.curves import (
    RegressionSolver,
    descent_curve,
    frozen_kernel_curve,
    kernel_regression_tasks,
    loss_drop,
    tangent_kernel,
)
from jaxsolve.solver import rollout, training_loss

RATE = jnp.array(0.3)


def affine(outputs, parameters, seed=0):
    random = np.random.default_rng(seed)
    matrix = jnp.asarray(random.standard_normal((outputs, parameters)))
    offset = jnp.asarray(random.standard_normal(outputs))
    return lambda free: jnp.matmul(matrix, free) - offset, jnp.asarray(random.standard_normal(parameters))


@pytest.fixture(scope="module")
def solver():
    return RegressionSolver.draw(4, 6, depth=4, features=4, head_size=3, generator=np.random.default_rng(0))


@pytest.mark.parametrize("shape", [(5, 8), (8, 5)])
def test_the_curve_of_an_affine_model_is_exact(shape):
    residual, start = affine(*shape)
    measured = descent_curve(residual, start, learning_rate=RATE, steps=60)
    kernel = tangent_kernel(residual, start)
    predicted = frozen_kernel_curve(kernel, residual(start), learning_rate=RATE, steps=jnp.arange(61))
    assert predicted.stable
    np.testing.assert_allclose(predicted.loss, measured, rtol=1e-12)


def test_a_singular_kernel_leaves_its_plateau():
    residual, start = affine(8, 5)
    kernel = tangent_kernel(residual, start)
    far = frozen_kernel_curve(kernel, residual(start), learning_rate=RATE, steps=jnp.array([10**6]))
    matrix = jax.jacrev(residual)(start)
    best = np.linalg.lstsq(matrix, residual(jnp.zeros(5)), rcond=None)[1][0] / 16
    np.testing.assert_allclose(far.loss, best, rtol=1e-9)


@pytest.mark.parametrize(("factor", "stable"), [(1.9, True), (2.1, False)])
def test_stability_ends_at_two(factor, stable):
    residual, start = affine(5, 8)
    kernel = tangent_kernel(residual, start)
    rate = jnp.asarray(factor * 5 / np.linalg.eigvalsh(kernel)[-1])
    curve = frozen_kernel_curve(kernel, residual(start), learning_rate=rate, steps=jnp.array([0, 4000]))
    assert bool(curve.stable) is stable
    assert bool(curve.loss[1] < curve.loss[0]) is stable


@pytest.mark.parametrize("transform", [lambda function: function, jax.jit])
def test_values_that_are_wrong_are_refused(transform):
    steps = jnp.arange(3)
    predict = transform(lambda kernel, start: frozen_kernel_curve(kernel, start, learning_rate=RATE, steps=steps).loss)
    error = ValueError if transform is not jax.jit else RuntimeError
    for kernel, start, message in (
        (jnp.eye(2), jnp.array([1.0, jnp.nan]), "residual has entries"),
        (jnp.eye(2) * jnp.inf, jnp.ones(2), "kernel has entries"),
        (jnp.array([[1.0, 0.5], [0.0, 1.0]]), jnp.ones(2), "not symmetric"),
    ):
        with pytest.raises(error, match=message):
            jax.block_until_ready(predict(kernel, start))


def test_shapes_and_dtypes_that_do_not_fit_are_refused(unchecked):
    kernel, start, steps = jnp.eye(3), jnp.ones(3), jnp.arange(2)
    for arguments, options, message in (
        ((kernel, jnp.ones(2)), {}, "outputs"),
        ((kernel, start.astype(jnp.float32)), {}, "one floating dtype"),
        ((kernel, start), {"learning_rate": jnp.ones(2)}, "vmap"),
        ((kernel, start), {"steps": jnp.ones(2)}, "integers"),
    ):
        with pytest.raises(ValueError, match=message):
            frozen_kernel_curve(*arguments, **({"learning_rate": RATE, "steps": steps} | options))
    with pytest.raises(ValueError, match="ravel"):
        tangent_kernel(lambda free: free[None], jnp.ones(2))
    with pytest.raises(ValueError, match="at least 0"):
        descent_curve(lambda free: free, jnp.ones(2), learning_rate=RATE, steps=-1)


def test_descent_lowers_the_loss_of_the_solver(solver):
    operators, right_hand_sides, solutions = solver.tasks
    residual, parameters = solver.residual()
    curve = descent_curve(residual, parameters, learning_rate=jnp.array(0.05), steps=20)
    matrix = solver.preconditioner.matrix(operators)
    final = rollout(matrix, operators, right_hand_sides, jnp.zeros_like(solutions), depth=4)
    np.testing.assert_allclose(curve[0], training_loss(final, solutions), rtol=1e-14)
    assert (np.diff(curve) < 0).all()
    assert 0 < loss_drop(curve) < 1


def test_the_scale_keeps_the_start_and_multiplies_the_jacobian(solver):
    plain, parameters = solver.residual()
    scaled, _ = solver.residual(3.0)
    np.testing.assert_allclose(scaled(parameters), plain(parameters), rtol=1e-12)
    kernel = tangent_kernel(plain, parameters)
    difference = tangent_kernel(scaled, parameters) - 9 * kernel
    assert np.linalg.norm(difference) <= 1e-12 * np.linalg.norm(9 * kernel)


def test_tokens_are_no_parameters(solver):
    _, parameters = solver.residual()
    assert parameters.tokens is None
    assert parameters.skip is not None


def test_tasks_are_consistent_and_scaled():
    operators, right_hand_sides, solutions = kernel_regression_tasks(6, 9, generator=np.random.default_rng(1))
    spectra = np.linalg.eigvalsh(operators)
    np.testing.assert_allclose(spectra.max(), 1, rtol=1e-12)
    assert spectra.min() > 0
    np.testing.assert_allclose(np.einsum("tij,tj->ti", operators, solutions), right_hand_sides, atol=1e-13)


def test_solutions_have_the_inverse_covariance():
    tasks = kernel_regression_tasks(4000, 3, shortest=0.2, longest=0.2, generator=np.random.default_rng(2))
    positions = np.linspace(0, 1, 3)
    covariance = np.exp(-((positions[:, None] - positions) ** 2) / 0.08) + 0.3 * np.eye(3)
    np.testing.assert_allclose(np.cov(tasks.solutions.T), np.linalg.inv(covariance), atol=0.08)


@pytest.mark.parametrize("wrong", [{"ridge": 0.0}, {"shortest": 0.3}, {"size": 1}, {"tasks": 0}])
def test_tasks_outside_their_ranges_are_refused(wrong):
    options = {"tasks": 2, "size": 3, "generator": np.random.default_rng(0)} | wrong
    with pytest.raises(ValueError, match="got"):
        kernel_regression_tasks(options.pop("tasks"), options.pop("size"), **options)
