"""Encoders of prompts: exact moments against drawn prompts, the law of training, and pretraining on N tasks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.solver import (
    encoder_trajectory,
    in_context_encoder,
    in_context_risk,
    prompt_moment,
    prompt_statistics,
    regress_encoder,
)

SIZE, RANK = 5, 2
ROTATION = np.linalg.qr(np.random.default_rng(0).standard_normal((SIZE, SIZE)))[0]
FACTOR = ROTATION[:, :RANK] * np.sqrt([1.0, 0.4])
COVARIANCE = jnp.asarray(FACTOR @ FACTOR.T)
NOISE = jnp.array(0.3)


def drawn(tasks, prompt_size, seed=0):
    task_key, prompt_key = jax.random.split(jax.random.key(seed))
    truth = jax.random.normal(task_key, (tasks, RANK)) @ jnp.asarray(FACTOR.T)
    return truth, prompt_statistics(truth, prompt_size=prompt_size, noise_variance=NOISE, key=prompt_key)


@pytest.mark.parametrize("prompt_size", [1, 6])
def test_moments_and_risk_are_those_of_drawn_prompts(prompt_size):
    truth, statistics = (np.asarray(array) for array in drawn(40_000, prompt_size))
    for found, left in (
        (COVARIANCE, truth),
        (prompt_moment(COVARIANCE, prompt_size=prompt_size, noise_variance=NOISE), statistics),
    ):
        products = left[:, :, None] * statistics[:, None, :]
        error = products.std(axis=0) / len(products) ** 0.5
        assert (np.abs(products.mean(axis=0) - found) < 5 * error).all()
    encoder = jnp.asarray(np.random.default_rng(3).standard_normal((SIZE, SIZE)))
    losses = ((truth - statistics @ encoder.T) ** 2).sum(axis=1)
    risk = float(in_context_risk(encoder, COVARIANCE, prompt_size=prompt_size, noise_variance=NOISE))
    assert abs(losses.mean() - risk) < 5 * losses.std() / len(losses) ** 0.5


def test_the_best_encoder_is_a_minimum_with_the_risk_of_its_formula():
    def risk(encoder):
        return in_context_risk(encoder, COVARIANCE, prompt_size=8, noise_variance=NOISE)

    best = in_context_encoder(COVARIANCE, prompt_size=8, noise_variance=NOISE)
    assert float(jnp.abs(jax.grad(risk)(best)).max()) < 1e-13
    second = prompt_moment(COVARIANCE, prompt_size=8, noise_variance=NOISE)
    np.testing.assert_allclose(best, np.linalg.solve(second, COVARIANCE).T, atol=1e-13)
    trace, values = 1.4, np.array([1.0, 0.4])
    formula = (values * (1 - values / (9 / 8 * values + (trace + 0.3) / 8))).sum()
    assert float(risk(best)) == pytest.approx(formula, rel=1e-12)


def test_long_prompts_have_the_asymptote():
    best = in_context_encoder(COVARIANCE, prompt_size=10**6, noise_variance=NOISE)
    risk = in_context_risk(best, COVARIANCE, prompt_size=10**6, noise_variance=NOISE)
    assert float(risk) * 10**6 == pytest.approx(3 * 1.4 + 2 * 0.3, rel=1e-4)


def test_training_follows_the_law_of_the_encoder():
    """Against descent by automatic differentiation of the risk."""
    rate, steps = 0.2, 200
    second = prompt_moment(COVARIANCE, prompt_size=6, noise_variance=NOISE)
    best = in_context_encoder(COVARIANCE, prompt_size=6, noise_variance=NOISE)
    start = jnp.asarray(np.random.default_rng(4).standard_normal((SIZE, SIZE)))
    law = encoder_trajectory(start, best, second, learning_rate=jnp.array(rate), steps=jnp.array([steps]))[0]

    def objective(encoder):
        return in_context_risk(encoder, COVARIANCE, prompt_size=6, noise_variance=NOISE) / 2

    trained, _ = jax.lax.scan(
        lambda encoder, _: (encoder - rate * jax.grad(objective)(encoder), None), start, length=steps
    )
    assert float(jnp.linalg.norm(trained - law) / jnp.linalg.norm(law)) < 1e-12


def test_regression_is_least_squares_and_of_smallest_norm_below():
    truth, statistics = drawn(40, 4)
    found = regress_encoder(statistics, truth)
    np.testing.assert_allclose(found.T, np.linalg.lstsq(statistics, truth)[0], atol=1e-12)
    few = regress_encoder(statistics[:3], truth[:3])
    np.testing.assert_allclose(few, (np.linalg.pinv(statistics[:3]) @ truth[:3]).T, atol=1e-12)
    np.testing.assert_allclose(statistics[:3] @ few.T, truth[:3], atol=1e-12)


@pytest.mark.parametrize("tasks", [3, 40])
def test_a_ridge_is_its_normal_equations_and_tends_to_none(tasks):
    truth, statistics = (np.asarray(array) for array in drawn(tasks, 4))
    found = regress_encoder(jnp.asarray(statistics), jnp.asarray(truth), ridge=jnp.array(0.1))
    gram = statistics.T @ statistics + tasks * 0.1 * np.eye(SIZE)
    np.testing.assert_allclose(found, np.linalg.solve(gram, statistics.T @ truth).T, atol=1e-12)
    small = regress_encoder(jnp.asarray(statistics), jnp.asarray(truth), ridge=jnp.array(1e-12))
    np.testing.assert_allclose(small, regress_encoder(jnp.asarray(statistics), jnp.asarray(truth)), atol=1e-8)


def test_prompts_do_not_depend_on_the_number_of_tasks():
    truth, statistics = drawn(10, 3)
    again = prompt_statistics(
        truth[:4], prompt_size=3, noise_variance=NOISE, key=jax.random.split(jax.random.key(0))[1]
    )
    np.testing.assert_allclose(statistics[:4], again, rtol=1e-12)


@pytest.mark.parametrize("prompt_size", [0, -1, 1.5])
def test_an_empty_prompt_is_refused(unchecked, prompt_size):
    for refusing in (
        lambda: prompt_moment(COVARIANCE, prompt_size=prompt_size, noise_variance=NOISE),
        lambda: prompt_statistics(COVARIANCE, prompt_size=prompt_size, noise_variance=NOISE, key=jax.random.key(0)),
    ):
        with pytest.raises(ValueError, match="prompt_size is an integer of at least 1"):
            refusing()


def test_other_bad_input_is_refused(unchecked):
    with pytest.raises(ValueError, match="at least one task"):
        regress_encoder(jnp.zeros((0, 3)), jnp.zeros((0, 2)))
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(4, 2\)"):
        regress_encoder(jnp.zeros((2, 3)), jnp.zeros((4, 2)))
    with pytest.raises(ValueError, match="ridge is at least 0"):
        regress_encoder(jnp.ones((2, 3)), jnp.ones((2, 2)), ridge=jnp.array(-1.0))
    with pytest.raises(ValueError, match="at least 0"):
        prompt_moment(COVARIANCE, prompt_size=2, noise_variance=jnp.array(-1.0))
    with pytest.raises(ValueError, match="negative eigenvalue"):
        prompt_moment(-COVARIANCE, prompt_size=2, noise_variance=NOISE)
    with pytest.raises(ValueError, match="square matrix"):
        prompt_moment(COVARIANCE[:2], prompt_size=2, noise_variance=NOISE)
    with pytest.raises(ValueError, match=r"got \(3, 3\)"):
        in_context_risk(jnp.eye(3), COVARIANCE, prompt_size=2, noise_variance=NOISE)
