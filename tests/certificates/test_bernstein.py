"""The empirical Bernstein bound: its value, its coverage, and what it refuses."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve._results import RESULTS
from jaxsolve.certificates import empirical_bernstein

DELTA = 0.05
REPETITIONS = 8000
LIMIT = 3.3
"""Standard errors: a chance of 1e-3 for a test with two sides."""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("clip", [0.5, 10.0, 1e4])
def test_the_bound_is_that_of_losses_scaled_to_the_unit_interval(clip, dtype):
    losses = np.random.default_rng(0).standard_exponential(200).astype(dtype)
    found = empirical_bernstein(losses, clip=clip, confidence_delta=0.02)
    scaled, logarithm = np.minimum(losses.astype(float) / clip, 1), np.log(100)
    terms = scaled.mean(), np.sqrt(2 * scaled.var(ddof=1) * logarithm / 200), 7 * logarithm / (3 * 199)
    tolerance = 40 * float(np.finfo(dtype).eps)
    assert found.bound.dtype == dtype
    assert float(found.bound) == pytest.approx(clip * sum(terms), rel=tolerance)
    for value, expected in zip((found.mean, found.deviation, found.deterministic), terms, strict=True):
        assert float(value) == pytest.approx(clip * expected, rel=tolerance)
    assert float(found.variance) == pytest.approx(clip**2 * scaled.var(ddof=1), rel=tolerance)
    assert float(found.clipped_share) == pytest.approx((losses > clip).mean(), rel=tolerance)


def test_two_losses_by_hand():
    found = empirical_bernstein(np.array([0.5, 1.5]), clip=10.0, confidence_delta=DELTA)
    logarithm = np.log(40)
    assert float(found.bound) == pytest.approx(1 + np.sqrt(logarithm / 2) + 70 * logarithm / 3, rel=1e-14)


def test_no_sample_is_below_the_deterministic_term():
    for constant in (0.0, 0.25):
        found = empirical_bernstein(np.full(512, constant), clip=10.0, confidence_delta=DELTA)
        assert float(found.deterministic) == pytest.approx(0.16844, abs=5e-6)
        assert float(found.bound) == pytest.approx(constant + 0.16844, abs=5e-6)


@pytest.mark.parametrize(("probability", "count", "without"), [(0.002, 512, 0.64), (0.02, 64, 0.73)])
def test_the_bound_covers_and_without_its_deterministic_term_it_does_not(probability, count, without):
    def one(key):
        losses = jax.random.bernoulli(key, probability, (count,)).astype(float)
        found = empirical_bernstein(losses, clip=1.0, confidence_delta=DELTA, throw=False)
        return jnp.stack([found.bound, found.bound - found.deterministic])

    bounds = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), REPETITIONS)))
    covered, counterfeit = (bounds >= probability).mean(axis=0)
    standard_error = np.sqrt(DELTA * (1 - DELTA) / REPETITIONS)
    assert covered >= 1 - DELTA - LIMIT * standard_error
    assert counterfeit < 1 - DELTA - LIMIT * standard_error
    # What is left covers if and only if a loss of 1 was seen.
    seen = 1 - (1 - probability) ** count
    assert seen == pytest.approx(without, abs=0.005)
    assert abs(counterfeit - seen) <= LIMIT * np.sqrt(seen * (1 - seen) / REPETITIONS)


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "NaN or infinite"), (np.inf, "NaN or infinite"), (-np.inf, "NaN or infinite"), (-0.1, "negative")],
)
def test_losses_that_are_none_are_refused_by_index(value, message):
    losses = np.ones(9)
    losses[[3, 7]] = value
    with pytest.raises(ValueError, match=rf"{message}.* 2 of 9 losses, at index 3, 7"):
        empirical_bernstein(losses, clip=1.0, confidence_delta=DELTA)
    with pytest.raises(RuntimeError, match=message):
        eqx.filter_jit(lambda x: empirical_bernstein(x, clip=1.0, confidence_delta=DELTA).bound)(losses)
    told = empirical_bernstein(losses, clip=1.0, confidence_delta=DELTA, throw=False)
    assert np.flatnonzero(told.result != RESULTS.successful).tolist() == [3, 7]
    assert all(np.isnan(value) for value in (told.bound, told.mean, told.variance, told.clipped_share))


@pytest.mark.parametrize(
    ("losses", "clip", "delta", "message"),
    [
        (np.ones(0), 1.0, DELTA, "at least two losses"),
        (np.ones(1), 1.0, DELTA, "at least two losses"),
        (np.ones((3, 3)), 1.0, DELTA, r"one axis; got shape \(3, 3\)"),
        (np.ones(3, int), 1.0, DELTA, "floating"),
        (np.ones(3), 0.0, DELTA, "clip is positive"),
        (np.ones(3), -1.0, DELTA, "clip is positive"),
        (np.ones(3), np.inf, DELTA, "clip is positive"),
        (np.ones(3), np.nan, DELTA, "clip is positive"),
        *((np.ones(3), 1.0, delta, "strictly between 0 and 1") for delta in (0.0, 1.0, 1.5, -0.1, np.nan)),
    ],
)
def test_misuse_is_refused(unchecked, losses, clip, delta, message):
    with pytest.raises(ValueError, match=message):
        empirical_bernstein(losses, clip=clip, confidence_delta=delta)
