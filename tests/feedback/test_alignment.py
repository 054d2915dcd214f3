"""The squared cosine and its law."""

import numpy as np
import pytest
import scipy.stats
from jax import grad, jit
from jax import numpy as jnp

from jaxsolve.feedback import SquaredCosineLaw, alignment

DIMENSIONS = np.array([2, 3, 4, 17, 64, 1024, 4096])

# log Pr(Q > q), computed with 60 digits, where the probability itself is below the smallest float64.
DEEP = [
    (0.9, 1024, -1181.410986295275),
    (0.5, 4096, -1423.2571359394187),
    (0.01, 10**6, -5029.993961846837),
    (0.5, 10**6, -346580.0306801737),
    (1 - 1e-12, 64, -872.6791887968641),
]


@pytest.mark.parametrize("scale", [1e-290, 1e-170, 1e-6, 1.0, 1e9, 1e170, 1e290])
def test_alignment_is_free_of_scale(scale):
    first, second = np.random.default_rng(0).standard_normal((2, 5, 3))
    expected = (first * second).sum() ** 2 / ((first**2).sum() * (second**2).sum())
    assert float(alignment(scale * first, second)) == pytest.approx(expected, rel=1e-12)
    assert float(alignment(first, scale * second)) == pytest.approx(expected, rel=1e-12)
    assert float(alignment(scale * first, first)) == pytest.approx(1, rel=1e-12)


def test_alignment_with_zero_is_not_defined():
    assert np.isnan(alignment(np.zeros((2, 2)), np.ones((2, 2))))
    assert alignment(np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])) == 0


def test_alignment_is_differentiable_and_keeps_the_dtype():
    first = jnp.asarray(np.random.default_rng(1).standard_normal((3, 4)), jnp.float32)
    assert jit(alignment)(first, first).dtype == jnp.float32
    direction = grad(alignment)(first, jnp.cos(first))
    assert abs(float(jnp.sum(direction * first))) < 1e-6 < float(jnp.abs(direction).max())


def test_shapes_that_differ_are_refused(unchecked):
    with pytest.raises(ValueError, match="one shape"):
        alignment(np.ones((3, 4)), np.ones((4, 3)))


def test_the_law_is_the_beta_law():
    law, reference = SquaredCosineLaw(DIMENSIONS), scipy.stats.beta(0.5, (DIMENSIONS - 1) / 2)
    np.testing.assert_allclose(law.mean, reference.mean(), rtol=1e-13)
    np.testing.assert_allclose(law.variance, reference.var(), rtol=1e-11)
    points = np.array([0.0, 1e-9, 1e-4, 0.02, 0.3, 0.97, 1.0])[:, None]
    np.testing.assert_allclose(law.cdf(points), reference.cdf(points), rtol=1e-12)


def test_quantiles_invert_the_distribution_function():
    law = SquaredCosineLaw(DIMENSIONS)
    probabilities = np.array([0.0, 1e-6, 0.3, 0.99])[:, None]
    np.testing.assert_allclose(law.cdf(law.quantile(probabilities)), probabilities + 0 * DIMENSIONS, rtol=1e-10)
    assert (law.quantile(1.0) == 1).all()


def test_the_log_tail_where_the_probability_is_a_float():
    dimensions = np.array([2, 3, 4, 64, 1024, 10**6])
    points = np.concatenate([np.geomspace(1e-12, 1e-3, 20), np.linspace(0.01, 0.9, 30)])[:, None]
    probability = scipy.stats.beta.sf(points, 0.5, (dimensions - 1) / 2)
    comparable = (probability > 1e-280) & (probability < 0.9)
    measured = SquaredCosineLaw(dimensions).log_survival(points)
    assert comparable.sum() > 100
    np.testing.assert_allclose(measured[comparable], np.log(probability[comparable]), rtol=1e-9)


@pytest.mark.parametrize(("point", "dimension", "expected"), DEEP)
def test_the_log_tail_where_the_probability_underflows(point, dimension, expected):
    assert float(SquaredCosineLaw(dimension).log_survival(point)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dimension", [1024, 10**6])
def test_the_log_tail_has_no_seam_where_the_probability_underflows(dimension):
    law, level = SquaredCosineLaw(dimension), np.arange(600.0, 740.0)
    values = law.log_survival(-np.expm1(-level * 2 / (dimension - 1)))
    assert values.max() > np.log(1e-290) > values.min()
    bend = np.diff(values, 2)
    assert (np.abs(bend) < 3e-6).all()
    assert np.ptp(bend) < 2e-6


def test_the_ends_of_the_log_tail():
    law = SquaredCosineLaw(DIMENSIONS)
    assert (law.log_survival(0.0) == 0).all()
    assert not np.signbit(law.log_survival(0.0)).any()
    assert (law.log_survival(1.0) == -np.inf).all()
    tiny = float(SquaredCosineLaw(64).log_survival(1e-300))
    assert tiny == pytest.approx(-6.307932215018778e-150, rel=1e-12)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan])
@pytest.mark.parametrize("method", ["cdf", "quantile", "log_survival"])
def test_arguments_outside_the_unit_interval_are_refused(method, wrong):
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        getattr(SquaredCosineLaw(64), method)(wrong)


@pytest.mark.parametrize("dimension", [1, 1.99, -4, np.nan, np.inf, np.array([64, 1])])
def test_dimensions_without_a_law_are_refused(dimension):
    with pytest.raises(ValueError, match="at least 2"):
        SquaredCosineLaw(dimension)
