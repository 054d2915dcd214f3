"""Numbers read off evidence, and numbers held against print."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxsolve.claims import (
    KS,
    Above,
    AtMost,
    CurveDeviation,
    CurveError,
    CurveMedian,
    CurveRatio,
    CurveValue,
    Deviation,
    Discrepancy,
    InBand,
    KolmogorovSmirnov,
    LargestDeviation,
    LargestDiscrepancy,
    LogError,
    Mean,
    MomentError,
    NoViolations,
    Ordering,
    PValue,
    Quantile,
    Slope,
    SmallestRatio,
    Within,
    WithinFactor,
    parse_number,
    parse_numbers,
)
from jaxsolve.evidence import Curve, Evaluation, Law, Pair, Result, Samples, Verdict

GRID = jnp.array([10.0, 20.0])
VALUES = np.random.default_rng(0).exponential(scale=[1.0, 3.0], size=(4000, 2))


def exponential_cdf(values):
    return jnp.asarray(stats.expon.cdf(np.asarray(values), scale=[1.0, 3.0]))


@pytest.fixture
def evaluation():
    law = Law(eqx.Partial(exponential_cdf), jnp.array([1.0, 3.0]), jnp.array([1.0, 9.0]))
    pairs = {
        "law": Pair(law, Samples(jnp.asarray(VALUES))),
        "curve": Pair(Curve(GRID, jnp.array([1.0, 2.0])), Curve(GRID, jnp.array([[1.1, 2.1], [1.3, 2.3]]))),
    }
    verdict = Verdict(Result.AGREES, 0.125, 0.5, "")
    return Evaluation(GRID, pairs, {"law": verdict, "curve": verdict})


def test_readings_of_a_law(evaluation):
    predicted, measured = Mean(20.0)(evaluation, "law")
    assert (predicted, measured) == (3.0, pytest.approx(VALUES[:, 1].mean()))
    predicted, measured = Quantile(20.0, 0.99)(evaluation, "law")
    assert predicted == pytest.approx(-3 * np.log(0.01), rel=1e-10)
    assert measured == pytest.approx(np.quantile(VALUES[:, 1], 0.99))
    reference = [stats.kstest(VALUES[:, i], stats.expon(scale=scale).cdf) for i, scale in enumerate([1.0, 3.0])]
    assert KolmogorovSmirnov(10.0)(evaluation, "law").measured == pytest.approx(reference[0].statistic)
    assert KolmogorovSmirnov()(evaluation, "law").measured == pytest.approx(max(r.statistic for r in reference))
    assert PValue(20.0)(evaluation, "law").measured == pytest.approx(reference[1].pvalue, rel=1e-6)
    assert PValue()(evaluation, "law").measured == pytest.approx(min(r.pvalue for r in reference), rel=1e-6)


def test_readings_of_a_curve(evaluation):
    assert CurveValue(20.0)(evaluation, "curve") == (2.0, pytest.approx(2.2))
    assert SmallestRatio(100.0)(evaluation, "curve") == (100.0, 0.125)
    curves = Pair(Curve(GRID, jnp.array([[3.0, 4.0], [1.0, 1.0]])), Curve(GRID, jnp.array([[3.0, 5.0], [1.0, 1.0]])))
    found = CurveError(10.0)(Evaluation(GRID, {"c": curves}, evaluation.verdicts), "c")
    assert found == (0.0, pytest.approx(1 / np.sqrt(34)))
    assert Discrepancy()(evaluation, "curve") == (0.0, 0.125)


def test_readings_of_a_curve_with_several_entries(evaluation):
    curves = Pair(Curve(GRID, jnp.array([[3.0, 4.0], [1.0, 2.0]])), Curve(GRID, jnp.array([[3.5, 4.0], [1.0, 1.0]])))
    found = Evaluation(GRID, {"c": curves}, evaluation.verdicts)
    assert CurveValue(20.0, entry=1)(found, "c") == (2.0, 1.0)
    assert CurveDeviation(10.0, entry=0)(found, "c") == (0.0, 0.5)
    assert LargestDeviation()(found, "c") == (0.0, 1.0)
    assert CurveMedian()(found, "c") == (2.5, 2.25)
    assert Deviation(20.0)(evaluation, "law") == (3.0, pytest.approx(VALUES[:, 1].std(ddof=1)))
    with pytest.raises(ValueError, match="is a law"):
        LargestDeviation()(evaluation, "law")


def test_the_largest_discrepancy_brings_its_verdict(evaluation):
    worst = Verdict(Result.DISAGREES, 0.5, 0.1, "")
    both = Evaluation(GRID, evaluation.pairs, {**evaluation.verdicts, "law": worst})
    assert LargestDiscrepancy()(both, "curve").measured == 0.5
    assert LargestDiscrepancy().verdict(both, "curve") is worst
    lost = Evaluation(GRID, both.pairs, {**both.verdicts, "curve": Verdict(Result.DISAGREES, np.nan, 0.1, "")})
    assert np.isnan(LargestDiscrepancy()(lost, "law").measured)


@pytest.mark.parametrize(
    ("reading", "observable", "told"),
    [
        (Mean(20.0), "curve", "reads a law"),
        (CurveValue(20.0), "law", "reads a curve"),
        (Mean(15.0), "law", "no point 15"),
    ],
)
def test_a_reading_that_does_not_fit_is_refused(evaluation, reading, observable, told):
    with pytest.raises(ValueError, match=told):
        reading(evaluation, observable)


@pytest.mark.parametrize(
    ("printed", "numbers"),
    [
        ("1.05e-15", (1.05e-15,)),
        ("+0.0080", (0.008,)),
        ("-0.120 ± 0.013", (-0.12, 0.013)),
        ("0.39-0.82", (0.39, 0.82)),
        ("[0.13, 0.999]", (0.13, 0.999)),
        ("0.026 -> 0.763", (0.026, 0.763)),
        ("~250x", (250.0,)),
        ("81.68%", (0.8168,)),
        ("zero", (0.0,)),
        ("E[Q] = c", ()),
    ],
)
def test_printed_numbers(printed, numbers):
    assert parse_numbers(printed) == pytest.approx(numbers)


def test_a_text_without_numbers_is_refused():
    with pytest.raises(ValueError, match="No number"):
        parse_number("several")


@pytest.mark.parametrize(
    ("rule", "ours", "printed", "result"),
    [
        (Within(relative=0.1), 1.09, "1.0", Result.AGREES),
        (Within(relative=0.1), 1.11, "1.0", Result.DISAGREES),
        (Within(absolute=0.2), -0.1, "+0.1", Result.AGREES),
        (AtMost(), 1e-15, "1.05e-15", Result.AGREES),
        (AtMost(), 1.1e-15, "1.05e-15", Result.DISAGREES),
        (AtMost(factor=2.0), 1.1e-15, "1.05e-15", Result.AGREES),
        (NoViolations(), 0.0, "zero", Result.AGREES),
        (NoViolations(), 1e-9, "zero", Result.DISAGREES),
        (InBand(), 0.5, "0.39-0.82", Result.AGREES),
        (InBand(), 0.3, "0.39-0.82", Result.DISAGREES),
        (InBand(low=0.17, high=1.0), 0.1, "0.17", Result.DISAGREES),
        (InBand(low=0.17, high=1.0, chance=0.27), 0.1, "0.17", Result.INCONCLUSIVE),
        (InBand(low=0.17, high=1.0, chance=0.27), 0.5, "0.17", Result.INCONCLUSIVE),
        (InBand(low=0.17, high=1.0, chance=0.9999), 0.5, "0.17", Result.AGREES),
        (KS(draws=100_000), 0.003, "0.0042", Result.AGREES),
        (KS(draws=100_000), 0.003, "0.0072", Result.DISAGREES),
        (KS(draws=100_000), 0.0072, "0.003", Result.DISAGREES),
        (Above(0.01), 0.3, "0.17", Result.AGREES),
        (Above(0.01), 0.001, "0.17", Result.DISAGREES),
        (Above(0.01), 0.3, "0.001", Result.DISAGREES),
        (Slope(band=0.05), -1.03, "-1.0", Result.AGREES),
        (Slope(band=0.05), -1.3, "-1.0", Result.DISAGREES),
        (Ordering(), 0.1, "+0.177", Result.AGREES),
        (Ordering(), -0.1, "+0.177", Result.DISAGREES),
    ],
)
def test_rules_against_print(rule, ours, printed, result):
    assert rule(ours, printed).result is result


@pytest.mark.parametrize(
    "rule", [Within(1.0), AtMost(), NoViolations(), InBand(), KS(10), Above(0.0), Slope(1.0), Ordering()]
)
def test_nan_of_ours_disagrees(rule):
    assert rule(float("nan"), "1.0").result is Result.DISAGREES


def test_errors_of_costs_are_differences_of_logarithms(evaluation):
    predicted, measured = np.log([1.0, 2.0]), np.log([[1.1, 2.1], [1.3, 2.3]])
    assert LogError()(evaluation, "curve").measured == pytest.approx(np.log(1.3))
    assert LogError(mean=True)(evaluation, "curve").measured == pytest.approx(np.abs(measured - predicted).mean())
    never = Evaluation(GRID, {"curve": Pair(Curve(GRID, jnp.ones(2)), Curve(GRID, jnp.zeros(2)))}, evaluation.verdicts)
    assert LogError()(never, "curve").measured == np.inf
    with pytest.raises(ValueError, match="is a law"):
        LogError()(evaluation, "law")


def test_the_ratio_of_two_curves(evaluation):
    assert CurveRatio(20.0)(evaluation, "curve") == (1.0, pytest.approx(2 / 2.2))


def test_errors_of_moments_are_averaged_over_all_panels(evaluation):
    laws = Evaluation(GRID, {"law": evaluation.pairs["law"]}, {"law": evaluation.verdicts["law"]})
    assert MomentError("mean")(laws, "law").measured == pytest.approx(np.abs(VALUES.mean(axis=0) - [1, 3]).mean())
    assert MomentError("variance")(laws, "law").measured == pytest.approx(
        np.abs(VALUES.var(axis=0, ddof=1) - [1, 9]).mean()
    )
    assert MomentError("mean").verdict(laws, "law").discrepancy == 0.125
    with pytest.raises(ValueError, match="is a curve"):
        MomentError("mean")(evaluation, "law")
    with pytest.raises(ValueError, match="'mean' or 'variance'"):
        MomentError("median")


@pytest.mark.parametrize(
    ("ours", "result"), [(100.0, Result.AGREES), (50.0, Result.DISAGREES), (800.0, Result.DISAGREES)]
)
def test_a_factor_allows_both_directions(ours, result):
    assert WithinFactor(3.0)(ours, "~250x").result is result
