"""Streaming statistics against those of the stacked draws, and against known laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2, norm

from jaxsolve import draws, logarithmic_edges, monte_carlo

KEY = jax.random.key(21)
FACTOR = np.array([[2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [-0.5, 0.3, 0.1]])
EDGES = np.linspace(-3, 3, 25)
COUNT = 20_011


def gaussian(*, key):
    """Mean (0, 100, −1) and covariance `F Fᵀ`; also its first entry as a sign."""
    drawn = jnp.asarray(FACTOR) @ jax.random.normal(key, (3,)) + jnp.array([0.0, 100.0, -1.0])
    return drawn, drawn[0] > 0


@pytest.fixture(scope="module")
def found():
    return monte_carlo(gaussian, KEY, COUNT, covariance=True, edges=EDGES, keep=True)


@pytest.fixture(scope="module")
def stacked():
    return [np.asarray(leaf) for leaf in draws(gaussian, KEY, COUNT)]


def test_values_are_the_stacked_draws(found, stacked):
    for kept, expected in zip(found.values, stacked, strict=True):
        assert kept.dtype == expected.dtype
        assert np.allclose(kept, expected, rtol=1e-15, atol=1e-15)


def test_moments_are_those_of_the_stacked_draws(found, stacked):
    for leaf, expected in enumerate(stacked):
        values = expected.astype(float)
        assert found.mean[leaf].shape == expected.shape[1:]
        assert np.allclose(found.mean[leaf], values.mean(axis=0), rtol=1e-14, atol=1e-14)
        assert np.allclose(found.variance[leaf], values.var(axis=0, ddof=1), rtol=1e-12)
        error = values.std(axis=0, ddof=1) / np.sqrt(COUNT)
        assert np.allclose(found.standard_error[leaf], error, rtol=1e-12)
        assert np.array_equal(found.minimum[leaf], found.values[leaf].min(axis=0))
        assert np.array_equal(found.maximum[leaf], found.values[leaf].max(axis=0))
    flat = np.concatenate([stacked[0], stacked[1][:, None]], axis=1)
    assert np.allclose(found.covariance, np.cov(flat.T), rtol=1e-11, atol=1e-13)


def test_counts_are_exact(found):
    inside = np.stack([np.histogram(column, EDGES)[0] for column in found.values[0].T])
    counts = found.histogram.counts[0]
    assert counts.shape == (3, len(EDGES) + 1)
    assert np.array_equal(counts[:, 1:-1], inside)
    assert np.array_equal(counts[:, 0], (found.values[0] < EDGES[0]).sum(axis=0))
    assert (counts.sum(axis=-1) == COUNT).all()


@pytest.mark.parametrize("probability", [0.0, 1e-4, 0.05, 0.5, 0.7, 0.999, 1.0])
def test_a_quantile_lies_in_its_bracket(found, probability):
    low, high = found.histogram.quantile(probability)
    for leaf in range(2):
        values = found.values[leaf].astype(float)
        expected = np.quantile(values, probability, axis=0, method="inverted_cdf")
        assert (low[leaf] <= expected).all()
        assert (expected <= high[leaf]).all()
        inner = (low[leaf] > EDGES[0]) & (high[leaf] < EDGES[-1])
        assert ((high[leaf] - low[leaf])[inner] <= np.diff(EDGES).max() + 1e-15).all()


def test_the_law_of_the_draws_is_met(found):
    """z-scores of mean and variance, and the chi-squared distance of the counts; all fixed by the key."""
    truth = FACTOR @ FACTOR.T
    z = (found.mean[0] - [0, 100, -1]) / np.sqrt(np.diag(truth) / COUNT)
    assert (abs(z) < 4).all()
    spread = np.sqrt((truth**2 + np.outer(np.diag(truth), np.diag(truth))) / COUNT)
    assert (abs(found.covariance[:3, :3] - truth) < 4 * spread).all()
    assert abs(found.mean[1] - 0.5) < 4 * np.sqrt(0.25 / COUNT)
    probabilities = np.diff(norm.cdf(np.concatenate([[-np.inf], EDGES, [np.inf]]) / 2))
    distance = np.sum((found.histogram.counts[0][0] - COUNT * probabilities) ** 2 / (COUNT * probabilities))
    assert 1e-4 < chi2.sf(distance, len(EDGES)) < 1 - 1e-4


def test_z_scores_of_many_runs_are_standard_normal():
    """Means of 128 runs of 64 draws against their own standard errors: not too large, not too small."""
    runs = [monte_carlo(_uniform, jax.random.fold_in(KEY, run), 64) for run in range(128)]
    z = np.array([(run.mean - 0.5) / run.standard_error for run in runs])
    assert abs(z.mean()) < 4 / np.sqrt(128)
    assert abs(np.mean(z**2) - 63 / 61) < 4 * np.sqrt(2.3 / 128)


def _uniform(*, key):
    return jax.random.uniform(key)


def test_the_run_stops_at_the_standard_error_after_a_power_of_two_of_blocks():
    found = monte_carlo(_uniform, KEY, 10**6, standard_error=0.005)
    assert found.standard_error <= 0.005 < 1.5 * found.standard_error
    assert found.count == 8 * 512  # 1/12 / 0.005² = 3333 draws are needed
    again = monte_carlo(_uniform, KEY, found.count)
    assert again.mean == found.mean
    assert monte_carlo(lambda key: jnp.zeros(()), KEY, 1000, standard_error=1.0).count == 64
    assert monte_carlo(_uniform, KEY, 100, standard_error=1e-9).count == 100


def test_single_precision_is_merged_in_double():
    found = monte_carlo(lambda key: jax.random.normal(key, (2,), "float32") + 1000, KEY, 4096, keep=True)
    assert found.values.dtype == np.float32
    assert found.mean.dtype == np.float64
    exact = found.values.astype(np.float64)
    assert np.allclose(found.mean, exact.mean(axis=0), rtol=1e-7)
    assert np.allclose(found.variance, exact.var(axis=0, ddof=1), rtol=1e-3)


def test_a_single_draw_has_no_spread():
    found = monte_carlo(_uniform, KEY, 1, block=4)
    assert np.isinf(found.variance)
    assert np.isinf(found.standard_error)
    assert found.minimum == found.maximum == found.mean


@pytest.mark.parametrize("accuracy", [0.01, 0.3])
def test_logarithmic_edges_keep_their_accuracy(accuracy):
    edges = logarithmic_edges(1e-3, 50.0, accuracy=accuracy)
    assert np.isclose(edges[-1], 50)
    assert np.array_equal(edges, -edges[::-1])
    low, high = edges[len(edges) // 2 : -1], edges[len(edges) // 2 + 1 :]
    middle = 2 * low * high / (low + high)
    assert np.isclose(low[0], 1e-3)
    assert max((middle / low - 1).max(), (1 - middle / high).max()) <= accuracy * (1 + 1e-12)


@pytest.mark.parametrize("arguments", [(0.0, 1.0, 0.1), (2.0, 1.0, 0.1), (1.0, 2.0, 0.0), (1.0, np.inf, 0.1)])
def test_edges_of_no_range_are_refused(arguments):
    with pytest.raises(ValueError, match="0 < smallest < largest"):
        logarithmic_edges(*arguments[:2], accuracy=arguments[2])
