"""Predictions under a frozen kernel: against training of an affine model, an ODE solver, and at the edges."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

from jaxsolve._results import RESULTS
from jaxsolve.curves import frozen_kernel_curve, predict_descent, predict_gradient_flow

RATE = jnp.array(0.3)
STEPS = jnp.array([0, 1, 2, 7, 60])
KINDS = {"symmetric": (0.0, True), "symmetric, general route": (0.0, False), "feedback": (0.15, False)}


def affine(kind, outputs=8, parameters=5, tests=3, seed=0):
    """Jacobian of training and test outputs, the directions a rule would take, and the start."""
    random = np.random.default_rng(seed)
    rows, others = (random.standard_normal((count, parameters)) for count in (outputs, tests))
    directions = rows + KINDS[kind][0] * random.standard_normal(rows.shape)
    return rows, others, directions, random.standard_normal(outputs), random.standard_normal(tests)


def arguments(kind, **sizes):
    rows, others, directions, residual, outputs = affine(kind, **sizes)
    options = {"cross_kernel": others @ directions.T, "test_outputs": outputs}
    options = {name: jnp.asarray(value) for name, value in options.items()}
    options |= {"learning_rate": RATE, "loss_divisor": len(rows), "symmetric": KINDS[kind][1]}
    return jnp.asarray(rows @ directions.T), jnp.asarray(residual), options


@pytest.mark.parametrize("sizes", [(8, 5), (5, 8)])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_those_of_training_an_affine_model(kind, sizes):
    """The parameters themselves are moved, and the outputs read off them."""
    rows, others, directions, residual, outputs = affine(kind, *sizes)
    kernel, start, options = arguments(kind, outputs=sizes[0], parameters=sizes[1])
    run = predict_descent(kernel, start, steps=STEPS, **options)
    moved = np.zeros(sizes[1])
    for step in range(61):
        now = residual + rows @ moved
        if step in STEPS:
            point = int(np.flatnonzero(np.asarray(STEPS) == step)[0])
            np.testing.assert_allclose(run.residual[point], now, rtol=0, atol=1e-13)
            np.testing.assert_allclose(run.test_outputs[point], outputs + others @ moved, rtol=0, atol=1e-13)
            np.testing.assert_allclose(run.loss[point], (now @ now) / (2 * sizes[0]), rtol=1e-12)
        moved = moved - 0.3 / sizes[0] * directions.T @ now
    assert bool(run.stable)
    assert int(run.rank) == 5
    assert bool(run.singular) is (sizes[0] > 5)
    assert bool((run.result == RESULTS.successful).all())


@pytest.mark.parametrize("kind", KINDS)
def test_flow_solves_its_differential_equation(kind):
    kernel, start, options = arguments(kind)
    flow = predict_gradient_flow(kernel, start, times=jnp.array([0.0, 0.5, 20.0]), **options)
    size = start.size

    def slope(_, state):
        scaled = 0.3 / size * state[:size]
        return np.concatenate([-np.asarray(kernel) @ scaled, -np.asarray(options["cross_kernel"]) @ scaled])

    state = np.concatenate([start, options["test_outputs"]])
    solved = scipy.integrate.solve_ivp(slope, (0, 20), state, t_eval=[0.0, 0.5, 20.0], rtol=1e-11, atol=1e-13).y.T
    np.testing.assert_allclose(flow.residual, solved[:, :size], atol=1e-9)
    np.testing.assert_allclose(flow.test_outputs, solved[:, size:], atol=1e-9)


@pytest.mark.parametrize("kind", ["symmetric", "feedback"])
@pytest.mark.parametrize("sizes", [(8, 5), (5, 8)])
def test_both_tend_to_the_limit(kind, sizes):
    kernel, start, options = arguments(kind, outputs=sizes[0], parameters=sizes[1])
    far = predict_descent(kernel, start, steps=jnp.array([1_000_000]), **options)
    flow = predict_gradient_flow(kernel, start, times=jnp.array([1e6, jnp.inf]), **options)
    for end in (far.residual[0], flow.residual[0]):
        np.testing.assert_allclose(flow.residual[1], end, atol=1e-9)
    for end in (far.test_outputs[0], flow.test_outputs[0]):
        np.testing.assert_allclose(flow.test_outputs[1], end, atol=1e-9)


def test_the_limit_is_the_solution_of_least_norm():
    rows, others, _, residual, outputs = affine("symmetric", outputs=5, parameters=8)
    kernel, start, options = arguments("symmetric", outputs=5, parameters=8)
    flow = predict_gradient_flow(kernel, start, times=jnp.array([jnp.inf]), **options)
    moved = np.linalg.lstsq(rows, -residual, rcond=None)[0]
    np.testing.assert_allclose(flow.test_outputs[0], outputs + others @ moved, rtol=1e-11)


def test_the_loss_is_that_of_the_frozen_curve():
    kernel, start, options = arguments("symmetric")
    curve = frozen_kernel_curve(kernel, start, learning_rate=RATE, steps=STEPS)
    np.testing.assert_allclose(predict_descent(kernel, start, steps=STEPS, **options).loss, curve.loss, rtol=1e-12)


def test_columns_share_the_kernel():
    kernel, start, options = arguments("feedback")
    both = jnp.stack([start, 2 * start - 1], axis=1)
    outputs = jnp.stack([options["test_outputs"], jnp.ones(3)], axis=1)
    whole = predict_descent(kernel, both, steps=STEPS, **options | {"test_outputs": outputs})
    for column in range(2):
        one = predict_descent(kernel, both[:, column], steps=STEPS, **options | {"test_outputs": outputs[:, column]})
        np.testing.assert_allclose(whole.residual[:, :, column], one.residual, atol=1e-14)
        np.testing.assert_allclose(whole.test_outputs[:, :, column], one.test_outputs, atol=1e-14)


def test_the_symmetric_part_has_another_curve():
    kernel, start, options = arguments("feedback")
    honest = predict_descent(kernel, start, steps=STEPS, **options)
    part = predict_descent((kernel + kernel.T) / 2, start, steps=STEPS, **options | {"symmetric": True})
    assert float(jnp.linalg.norm(part.residual[-1] - honest.residual[-1])) > 0.03


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("factor", "stable"), [(1.95, True), (2.05, False)])
def test_stability_of_steps_ends_at_two_and_flow_is_stable(symmetric, factor, stable):
    kernel, start, options = arguments("symmetric")
    rate = jnp.asarray(factor * 8 / np.linalg.eigvalsh(kernel)[-1])
    options |= {"symmetric": symmetric, "learning_rate": rate}
    run = predict_descent(kernel, start, steps=jnp.array([0, 2000]), **options)
    assert bool(run.stable) is stable
    assert bool(run.loss[1] < run.loss[0]) is stable
    assert bool(predict_gradient_flow(kernel, start, times=jnp.array([1.0]), **options).stable)


@pytest.mark.parametrize("symmetric", [True, False])
def test_an_overflow_is_told(symmetric):
    options = {"learning_rate": jnp.array(9.0), "loss_divisor": 1, "symmetric": symmetric}
    steps = jnp.array([3, 100_000])
    with pytest.raises(ValueError, match=r"overflows.*1 of 2 points, at index 1"):
        predict_descent(jnp.eye(2), jnp.ones(2), steps=steps, **options)
    run = predict_descent(jnp.eye(2), jnp.ones(2), steps=steps, throw=False, **options)
    assert not run.stable
    assert [bool(flag) for flag in run.result == RESULTS.diverged] == [False, True]
    np.testing.assert_allclose(run.residual[0], [-512.0, -512.0])


NO_LIMIT = {
    "negative eigenvalue": (np.diag([1.0, -0.5]), True),
    "rotation": (np.array([[0.0, 1.0], [-1.0, 0.0]]), False),
    "defective zero": (np.array([[0.0, 1.0], [0.0, 0.0]]), False),
}


@pytest.mark.parametrize("name", NO_LIMIT)
def test_a_limit_that_does_not_exist_is_told(name):
    kernel, symmetric = NO_LIMIT[name]
    options = {"learning_rate": RATE, "loss_divisor": 1, "symmetric": symmetric}
    call = partial(predict_gradient_flow, jnp.asarray(kernel), jnp.ones(2), times=jnp.array([1.0, jnp.inf]), **options)
    with pytest.raises(ValueError, match=r"no limit.*1 of 2 points, at index 1"):
        call()
    flow = call(throw=False)
    np.testing.assert_allclose(flow.residual[0], scipy.linalg.expm(-0.3 * kernel) @ np.ones(2), rtol=1e-12)
    assert bool(jnp.isnan(flow.residual[1]).all())


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_test_point_that_follows_what_is_never_learned_has_no_limit(symmetric):
    kernel = jnp.array([[1.0, 1.0], [1.0, 1.0]])
    options = {"learning_rate": RATE, "loss_divisor": 2, "symmetric": symmetric, "test_outputs": jnp.zeros(1)}
    times = jnp.array([jnp.inf])
    start = jnp.array([1.0, 3.0])
    sound = predict_gradient_flow(kernel, start, times=times, cross_kernel=jnp.array([[0.5, 0.5]]), **options)
    np.testing.assert_allclose(sound.test_outputs, [[-1.0]], rtol=1e-12)
    with pytest.raises(ValueError, match="never learned"):
        predict_gradient_flow(kernel, start, times=times, cross_kernel=jnp.array([[1.0, 0.0]]), **options)


def test_an_asymmetric_kernel_and_values_that_are_not_finite_are_told():
    kernel, start, options = arguments("feedback")
    with pytest.raises(ValueError, match="symmetric=False"):
        predict_descent(kernel, start, steps=STEPS, **options | {"symmetric": True})
    for broken in (kernel.at[1, 2].set(jnp.nan), kernel.at[1, 2].set(jnp.inf)):
        with pytest.raises(ValueError, match="NaN or infinite"):
            predict_descent(broken, start, steps=STEPS, **options)
    with pytest.raises(ValueError, match="NaN or infinite"):
        predict_gradient_flow(kernel, start.at[0].set(jnp.nan), times=jnp.ones(1), **options)
    traced = jax.jit(lambda matrix: predict_descent(matrix, start, steps=STEPS, **options).loss)
    with pytest.raises(RuntimeError, match="NaN or infinite"):
        jax.block_until_ready(traced(kernel.at[0, 0].set(jnp.nan)))


def test_misfits_are_refused(unchecked):
    kernel, start, options = arguments("symmetric")
    descent = partial(predict_descent, kernel, start, **options)
    for change, message in (
        ({"steps": jnp.array([1, -1])}, "negative"),
        ({"steps": jnp.array([1.0])}, "integers"),
        ({"loss_divisor": 0}, "loss_divisor"),
        ({"learning_rate": jnp.ones(2)}, "vmap"),
        ({"cross_kernel": None}, "come together"),
        ({"test_outputs": jnp.ones(4)}, "cross_kernel has shape"),
        ({"learning_rate": jnp.float32(0.1)}, "one floating dtype"),
    ):
        with pytest.raises(ValueError, match=message):
            descent(**{"steps": STEPS} | change)
    for times in (jnp.array([-1.0]), jnp.array([jnp.nan])):
        with pytest.raises(ValueError, match="negative or NaN"):
            predict_gradient_flow(kernel, start, times=times, **options)
    with pytest.raises(ValueError, match=r"\(size, size\)"):
        predict_descent(kernel[:3], start, steps=STEPS, **options)


def test_derivatives_of_steps_and_limits():
    """Against differences; the kernel has three zero eigenvalues, and the perturbation keeps its rank."""
    rows, others, directions, residual, outputs = map(jnp.asarray, affine("feedback"))

    def total(scale, finite):
        moved = rows.at[0].multiply(scale)
        options = {"learning_rate": 0.1 * scale, "loss_divisor": 8, "symmetric": False}
        options |= {"cross_kernel": others @ directions.T, "test_outputs": outputs}
        if finite:
            run = predict_descent(moved @ directions.T, residual, steps=jnp.array([3, 50]), **options)
        else:
            run = predict_gradient_flow(moved @ directions.T, residual, times=jnp.array([2.0, jnp.inf]), **options)
        return run.loss.sum() + run.test_outputs.sum()

    for finite in (True, False):
        slope = jax.jit(jax.grad(total), static_argnums=1)(jnp.array(1.2), finite)
        difference = (total(jnp.array(1.2 + 1e-5), finite) - total(jnp.array(1.2 - 1e-5), finite)) / 2e-5
        np.testing.assert_allclose(slope, difference, rtol=1e-6)


def test_learning_rates_and_steps_may_be_mapped_and_traced():
    kernel, start, options = arguments("feedback")
    del options["learning_rate"]
    rates = jnp.array([0.1, 0.3])

    @jax.jit
    def losses(rates, steps):
        return jax.vmap(lambda rate: predict_descent(kernel, start, learning_rate=rate, steps=steps, **options).loss)(
            rates
        )

    for index, rate in enumerate(rates):
        one = predict_descent(kernel, start, learning_rate=rate, steps=STEPS, **options)
        np.testing.assert_allclose(losses(rates, STEPS)[index], one.loss, rtol=1e-11)


@pytest.mark.parametrize("kind", ["symmetric", "feedback"])
def test_single_precision_stays_single(kind):
    kernel, start, options = arguments(kind)
    double = predict_descent(kernel, start, steps=STEPS, **options)
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32) if hasattr(leaf, "dtype") else leaf, options)
    run = predict_descent(kernel.astype(jnp.float32), start.astype(jnp.float32), steps=STEPS, **single)
    assert run.residual.dtype == run.test_outputs.dtype == jnp.float32
    np.testing.assert_allclose(run.residual, double.residual, atol=2e-5)
    assert int(run.rank) == int(double.rank)
