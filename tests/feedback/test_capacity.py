"""Costs of alignments, caps of the sphere, and the law of the surprisal."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from scipy.special import erfc

from jaxsolve.feedback import (
    SquaredCosineLaw,
    SurprisalLaw,
    alignment_cost,
    chance_threshold_cost,
    draw_squared_cosines,
    log_cap_fraction,
)

DIMENSIONS = np.array([2.0, 3, 4, 5, 17, 64, 1024, 4096, 1e5, 1e6])
POINTS = np.concatenate([[0, 1e-12, 1e-6, 1e-4], np.linspace(0.01, 0.99, 15), [1 - 1e-9]])[:, None]


def caps(points, dimensions, dtype=float):
    return np.asarray(
        log_cap_fraction(*jnp.broadcast_arrays(jnp.asarray(points, dtype), jnp.asarray(dimensions, dtype)))
    )


def test_the_cap_is_the_survival_function_by_another_route():
    expected = SquaredCosineLaw(DIMENSIONS).log_survival(POINTS)
    error = np.abs(caps(POINTS, DIMENSIONS[None]) - expected) / np.maximum(1, np.abs(expected))
    assert (error[:, :8] < 1e-14).all()
    assert error.max() < 1e-10


def test_the_cap_in_single_precision():
    points = POINTS.astype(np.float32)
    expected = SquaredCosineLaw(DIMENSIONS).log_survival(points.astype(float))
    measured = caps(points, DIMENSIONS[None], jnp.float32)
    finite = np.isfinite(measured)
    assert (~finite).sum() == DIMENSIONS.size  # the last point rounds to 1
    error = np.abs(measured[finite] - expected[finite]) / np.maximum(1, np.abs(expected[finite]))
    assert error.max() < 2e-6


def test_caps_of_the_circle_and_the_sphere_are_known():
    points = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(caps(points, np.full(5, 2.0)), np.log(2 / np.pi * np.arccos(np.sqrt(points))))
        np.testing.assert_allclose(caps(points, np.full(5, 3.0)), np.log(1 - np.sqrt(points)), atol=1e-15)


def test_the_naive_log_tail_overflows_and_ours_does_not():
    for dimension, point in ((4096, 0.5), (1024, 0.9), (10**6, 0.01)):
        with np.errstate(divide="ignore"):
            assert np.log(scipy.stats.beta.sf(point, 0.5, (dimension - 1) / 2)) == -np.inf
            assert scipy.stats.beta.logsf(point, 0.5, (dimension - 1) / 2) == -np.inf
        assert float(SquaredCosineLaw(dimension).log_survival(point)) == pytest.approx(
            float(caps(point, float(dimension))), rel=1e-12
        )


def test_the_cost_at_a_chance_threshold_is_not_half_of_it():
    thresholds = np.array([1.0, 2.0])
    cost = -SquaredCosineLaw(10**6).log_survival(thresholds / 10**6)
    np.testing.assert_allclose(cost, [1.148, 1.850], atol=1e-3)
    np.testing.assert_allclose(cost, np.asarray(chance_threshold_cost(jnp.asarray(thresholds))), rtol=1e-5)
    assert (np.abs(cost - thresholds / 2) > 0.6).all()


def test_the_chance_threshold_far_out():
    near = np.array([0.0, 0.3, 5.0, 300.0])
    measured = np.asarray(chance_threshold_cost(jnp.asarray(near)))
    np.testing.assert_allclose(measured, -np.log(erfc(np.sqrt(near / 2))), rtol=1e-12, atol=1e-15)
    far = float(chance_threshold_cost(jnp.asarray(1e6)))
    assert far == pytest.approx(5e5 + 0.5 * math.log(math.pi * 5e5), rel=1e-9)


def test_costs_of_layers_add():
    points, sizes = np.array([0.5, 0.01, 1e-4]), np.array([10**6, 4096, 64])
    single = [alignment_cost(points[i : i + 1], sizes[i : i + 1]) for i in range(3)]
    assert alignment_cost(points, sizes) == pytest.approx(sum(single), rel=1e-14)
    assert single[0] == pytest.approx(346580.0306801737, rel=1e-12)


def test_drawn_squared_cosines_are_those_of_vectors():
    sizes = np.array([2.0, 3, 5, 40])
    drawn = np.asarray(draw_squared_cosines(jnp.asarray(sizes), 20_000, key=jax.random.key(3)))
    generator = np.random.default_rng(3)
    p_values = []
    for column, size in zip(drawn.T, sizes, strict=True):
        first, second = generator.standard_normal((2, 20_000, int(size)))
        cosine = (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
        p_values.append(scipy.stats.ks_2samp(column, cosine**2).pvalue)
        assert scipy.stats.ks_2samp(column, 0.8 * cosine**2).pvalue < 1e-6
    assert (np.sort(p_values) > 1e-3 / np.arange(4, 0, -1)).all()


def test_the_surprisal_law_is_a_sum_of_exponentials():
    sums = -np.log(np.random.default_rng(0).uniform(size=(20_000, 8))).cumsum(axis=1)
    p_values = np.sort([scipy.stats.kstest(sums[:, n - 1], SurprisalLaw(n).cdf).pvalue for n in range(1, 9)])
    assert (p_values > 1e-3 / np.arange(8, 0, -1)).all()
    assert scipy.stats.kstest(sums[:, 3], SurprisalLaw(5).cdf).pvalue < 1e-6
    law = SurprisalLaw(np.array([1, 16]))
    assert law.mean.tolist() == law.variance.tolist() == [1, 16]
    assert law.cdf(-1.0).tolist() == [0, 0]


def test_seven_p_values_above_017_are_luck():
    """Under a true law all of seven exceed 0.17 with probability 0.83^7: three runs in four fail it."""
    generator = np.random.default_rng(5)
    law = scipy.stats.beta(0.5, 31.5)
    runs = [scipy.stats.kstest(law.rvs(100, random_state=generator), law.cdf).pvalue for _ in range(1400)]
    share = (np.array(runs).reshape(200, 7).min(axis=1) > 0.17).mean()
    expected = 0.83**7
    assert expected == pytest.approx(0.27, abs=0.002)
    assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / 200)


def test_under_jit_bad_values_are_told_at_run_time():
    with pytest.raises(Exception, match=r"in \[0, 1\]"):
        jax.block_until_ready(jax.jit(log_cap_fraction)(jnp.asarray(1.5), jnp.asarray(64.0)))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: log_cap_fraction(jnp.asarray(1.1), jnp.asarray(64.0)), r"in \[0, 1\]"),
        (lambda: log_cap_fraction(jnp.asarray(jnp.nan), jnp.asarray(64.0)), r"in \[0, 1\]"),
        (lambda: log_cap_fraction(jnp.asarray(0.1), jnp.asarray(1.0)), "at least 2"),
        (lambda: log_cap_fraction(jnp.asarray(0.1), jnp.asarray(jnp.inf)), "at least 2"),
        (lambda: log_cap_fraction(jnp.zeros(2), jnp.full(3, 64.0)), "one dimension per squared cosine"),
        (lambda: log_cap_fraction(jnp.zeros(2, jnp.float32), jnp.full(2, 64.0)), "one dtype"),
        (lambda: alignment_cost(np.zeros(2), np.full(3, 64.0)), "one dimension per layer"),
        (lambda: alignment_cost(np.zeros(0), np.zeros(0)), "at least one layer"),
        (lambda: alignment_cost(np.array([1.5]), np.array([64.0])), r"in \[0, 1\]"),
        (lambda: alignment_cost(np.array([0.5]), np.array([1.0])), "at least 2"),
        (lambda: chance_threshold_cost(jnp.asarray(-1.0)), "not negative"),
        (lambda: chance_threshold_cost(jnp.asarray(jnp.nan)), "not negative"),
        (lambda: SurprisalLaw(0), "at least 1"),
        (lambda: SurprisalLaw(1.5), "whole"),
        (lambda: SurprisalLaw(np.nan), "whole"),
        (lambda: SurprisalLaw(2).cdf(np.nan), "NaN"),
        (lambda: draw_squared_cosines(jnp.asarray([64.0]), 0, key=jax.random.key(0)), "at least one draw"),
        (lambda: draw_squared_cosines(jnp.asarray([1.0]), 1, key=jax.random.key(0)), "at least 2"),
    ],
)
def test_bad_input_is_refused(unchecked, wrong, told):
    with pytest.raises(ValueError, match=told):
        wrong()
