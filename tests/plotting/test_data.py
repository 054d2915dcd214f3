"""The arrays behind the figures, against pairs made by hand and against the rules that judge them."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import (
    BoundRule,
    Curve,
    IdentityRule,
    LimitRule,
    LocalRule,
    NullModelRule,
    Pair,
    PopulationRule,
    Result,
    kolmogorov_smirnov,
)
from jaxsolve.plotting import (
    bound_violations,
    curve_band,
    distribution,
    factors,
    local_errors,
    logarithmic_grid,
    power_law,
    relative_differences,
    spans_decades,
    standardised_deviations,
)

from .example_pairs import curves, examples

EXAMPLES = examples()


def test_a_band_is_two_standard_errors():
    band = curve_band(curves([1, 2], [1.0, 2.0], [1.1, 1.9], [0.1, 0.2]))
    np.testing.assert_allclose(band.low[:, 0], [0.9, 1.5])
    np.testing.assert_allclose(band.high[:, 0], [1.3, 2.3])
    assert band.band == "± 2 standard errors"


def test_a_band_is_the_range_of_replicates():
    band = curve_band(curves([1, 2], [1.0, 2.0], [[1.0, 2.0], [3.0, 1.0], [2.0, 3.0]]))
    np.testing.assert_array_equal(band.measured[:, 0], [2.0, 2.0])
    np.testing.assert_array_equal(band.low[:, 0], [1.0, 1.0])
    np.testing.assert_array_equal(band.high[:, 0], [3.0, 3.0])
    assert "3 replicates" in band.band


def test_a_single_measurement_has_no_band():
    band = curve_band(curves([1, 2], [1.0, 2.0], [1.0, 2.0]))
    assert band.band == ""
    np.testing.assert_array_equal(band.low, band.high)


@pytest.mark.parametrize(("entries", "lines"), [(1, 1), (4, 4), (5, 1), (12, 1)])
def test_few_entries_are_lines_and_many_are_averaged(entries, lines):
    value = np.arange(2.0 * entries).reshape(2, entries)
    band = curve_band(curves([1, 2], value, value))
    assert band.measured.shape == (2, lines)
    assert band.entries == (1 if lines == entries else entries)
    np.testing.assert_allclose(band.measured.mean(axis=1), value.mean(axis=1))
    np.testing.assert_allclose(band.high.max(axis=1), value.max(axis=1))


def test_trailing_axes_of_any_number_are_entries():
    value = np.arange(2.0 * 3 * 4).reshape(2, 3, 4)
    assert curve_band(curves([1, 2], value, value)).entries == 12


@pytest.mark.parametrize("relative_to", ["point", "curve"])
@pytest.mark.parametrize("example", ["identity", "identity_many"])
def test_the_largest_relative_difference_is_the_discrepancy_of_the_rule(example, relative_to):
    pair = EXAMPLES[example].pair
    difference = relative_differences(pair, relative_to=relative_to)
    verdict = IdentityRule(relative_to=relative_to)(pair, 1.0)
    np.testing.assert_allclose(difference.max(), verdict.discrepancy, rtol=1e-12)


def test_relative_differences_survive_numbers_whose_squares_underflow():
    pair = curves([1, 2], [1e-200, 2e-200], [1e-200, 3e-200])
    np.testing.assert_allclose(relative_differences(pair), [0.0, 0.5])


def test_a_vanished_prediction_gives_nan_not_zero():
    assert np.isnan(relative_differences(curves([1, 2], [0.0, 1.0], [0.0, 1.0]))[0])


@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_deviations_pass_the_critical_value_exactly_where_the_rule_agrees(shift):
    example = EXAMPLES["population_many"]
    predicted, measured = example.pair.predicted, example.pair.measured
    pair = Pair(Curve(predicted.grid, predicted.value + shift), measured)
    data = standardised_deviations(pair)
    verdict = PopulationRule()(pair, 1.0)
    assert (np.abs(data.deviation).max() <= data.critical) == (verdict.result is Result.AGREES)
    assert (verdict.result is Result.AGREES) == (shift == 0.0)


def test_a_mean_without_spread_is_allowed_rounding_alone():
    exact = curves([1.0, 2.0], [1.0, 1.0], [1.0, 1.0 + 1e-15], [0.0, 0.0])
    wrong = curves([1.0, 2.0], [1.0, 1.0], [1.0, 1.0 + 1e-12], [0.0, 0.0])
    assert np.abs(standardised_deviations(exact).deviation).max() < 4
    assert np.abs(standardised_deviations(wrong).deviation).max() > 100


def test_deviations_need_a_standard_error():
    assert np.isnan(standardised_deviations(curves([1, 2], [1.0, 2.0], [1.0, 2.0])).deviation).all()


def test_a_distribution_is_thinned_and_keeps_its_largest_distance():
    example = EXAMPLES["law"]
    data = distribution(example.pair)
    assert data.values.shape == data.predicted.shape == data.upto.shape
    assert len(data.values) <= 400
    np.testing.assert_allclose(data.upto[-1], 1.0)
    np.testing.assert_array_equal(data.below[0], 0.0)
    assert (np.diff(data.values, axis=0) >= 0).all()
    shown = np.maximum(np.abs(data.predicted - data.below), np.abs(data.predicted - data.upto)).max(axis=0)
    np.testing.assert_allclose(shown, kolmogorov_smirnov(example.pair), atol=0.2 * data.critical)
    assert data.critical == pytest.approx(example.rule(example.pair, 1.0).resolution)


@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_bounds_are_violated_where_the_rule_says_so(factor):
    example = EXAMPLES["bound"]
    predicted = example.pair.predicted
    pair = Pair(Curve(predicted.grid, factor * predicted.value), example.pair.measured)
    data = bound_violations(pair)
    verdict = BoundRule()(pair, 1.0)
    assert data.limit == 1.0
    assert data.violated.any() == (verdict.result is Result.DISAGREES) == (factor < 1)
    np.testing.assert_array_equal(data.violated, data.worst > 1)


def test_a_bound_on_a_signed_quantity_is_a_difference():
    data = bound_violations(curves([1, 2], [-1.0, -2.0], [-3.0, -1.0]))
    np.testing.assert_allclose(data.worst, [-1.0, 0.5])
    assert data.limit == 0.0
    np.testing.assert_array_equal(data.violated, [False, True])


def test_nan_violates_a_bound_and_an_infinite_bound_is_vacuous():
    data = bound_violations(curves([1, 2, 3], [1.0, np.inf, np.nan], [np.nan, 5.0, 1.0]))
    np.testing.assert_array_equal(data.violated, [True, False, True])
    np.testing.assert_array_equal(data.worst, [np.inf, -np.inf, np.inf])


def test_local_errors_are_those_of_the_rule():
    example = EXAMPLES["local"]
    rule = example.rule
    assert isinstance(rule, LocalRule)
    inside = example.grid <= rule.horizon
    np.testing.assert_allclose(local_errors(example.pair)[inside].max(), rule(example.pair, 1.0).discrepancy)


def test_a_power_law_finds_its_exponent():
    sizes = np.array([4.0, 8.0, 16.0, 64.0])
    law = power_law(curves(sizes, np.zeros(4), 3.0 * sizes**-1.5))
    assert law.slope == pytest.approx(-1.5, abs=1e-12)
    assert law.centre[1] == pytest.approx(3.0 * law.centre[0] ** -1.5)
    assert np.isnan(law.spread).all()


def test_the_slope_is_that_of_the_rule():
    example = EXAMPLES["limit"]
    rule = example.rule
    assert isinstance(rule, LimitRule)
    slope = power_law(example.pair).slope
    assert abs(slope - rule.exponent) == pytest.approx(rule(example.pair, 1.0).discrepancy)


def test_errors_that_are_zero_leave_no_slope():
    assert np.isnan(power_law(curves([1, 2, 3], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0])).slope)


@pytest.mark.parametrize("direction", ["over", "under"])
def test_the_smallest_factor_is_the_discrepancy_of_the_rule(direction):
    pair = EXAMPLES["null_model"].pair
    smallest = factors(pair, direction=direction).ratio.min()
    np.testing.assert_allclose(smallest, NullModelRule(3.0, direction)(pair, 1.0).discrepancy)


def test_a_factor_needs_positive_values():
    ratio = factors(curves([1, 2, 3], [1.0, -1.0, 2.0], [0.0, 1.0, 1.0])).ratio[:, 0]
    np.testing.assert_array_equal(ratio, [np.nan, np.nan, 2.0])


@pytest.mark.parametrize(
    ("grid", "logarithmic"),
    [
        ([1.0, 10.0, 100.0], True),
        ([64.0, 128.0, 256.0, 512.0], True),
        (np.arange(1.0, 1001.0), False),
        ([0.0, 1.0, 10.0, 100.0], False),
        ([5.0], False),
        ([2.0, 3.0, 4.0], False),
    ],
)
def test_a_grid_is_logarithmic_where_its_steps_are(grid, logarithmic):
    assert logarithmic_grid(np.asarray(grid)) is logarithmic


def test_only_positive_numbers_span_decades():
    assert spans_decades(np.array([[1.0], [np.nan], [1000.0]]))
    assert not spans_decades(np.array([0.0, 1000.0]))
    assert not spans_decades(np.array([np.nan]))


def test_single_precision_is_judged_by_its_own_rounding():
    grid = jnp.arange(1.0, 3.0, dtype=jnp.float32)
    error = jnp.zeros(2, jnp.float32)
    pair = Pair(Curve(grid, grid), Curve(grid, grid * jnp.asarray(1 + 1e-6, jnp.float32), error))
    data = standardised_deviations(pair)
    assert np.abs(data.deviation).max() < data.critical
