"""Each rule: what holds agrees, what fails disagrees, what cannot be seen is inconclusive, NaN never passes."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from jaxsolve.evidence import (
    BoundRule,
    Curve,
    IdentityRule,
    Kind,
    Law,
    LawRule,
    LimitRule,
    LocalRule,
    NullModelRule,
    Pair,
    PopulationRule,
    Result,
    Samples,
    TransitionRule,
)

GRID = jnp.array([1.0, 2.0, 4.0, 8.0])
ONES = jnp.ones(4)


def curve(value, error=None):
    return Curve(GRID, jnp.asarray(value, float), None if error is None else jnp.full(4, error))


def normal_cdf(values):
    return jnp.asarray(norm.cdf(np.asarray(values)))


def law(mean=0.0, variance=1.0):
    return Law(eqx.Partial(normal_cdf), jnp.full(3, mean), jnp.full(3, variance))


def normal_samples(count, shift=0.0, scale=1.0):
    return Samples(shift + scale * jax.random.normal(jax.random.key(3), (count, 3)))


PREDICTED = jnp.array([1.0, 0.5, 0.25, 0.125])
HOLDS = {
    "identity": (IdentityRule(), curve(PREDICTED), curve(PREDICTED * (1 + 4e-16))),
    "population": (PopulationRule(), curve(PREDICTED), curve(PREDICTED + 2e-3, 1e-3)),
    "law": (LawRule(), law(), normal_samples(4000)),
    "bound": (BoundRule(), curve(PREDICTED), curve([0.9, 0.4, 0.25, 0.0])),
    "local": (LocalRule(level=0.1, horizon=3.0), curve(ONES), curve([1.0, 1.05, 1.05, 1.5], 1e-4)),
    "limit": (LimitRule(exponent=-1.0, band=0.1), curve(0 * ONES), curve(0.3 / GRID, 1e-4)),
    "transition": (
        TransitionRule(),
        Curve(GRID, jnp.stack([PREDICTED - 0.1, PREDICTED + 0.1], axis=1)),
        curve(PREDICTED + 0.05, 1e-3),
    ),
    "null_model": (NullModelRule(factor=2.0), curve(3 * PREDICTED), curve(PREDICTED, 1e-4)),
}
FAILS = {
    "identity": curve(PREDICTED * (1 + 1e-12)),
    "population": curve(PREDICTED + 5e-3, 1e-3),
    "law": normal_samples(4000, scale=1.1),
    "bound": curve([0.9, 0.4, 0.2500001, 0.0]),
    "local": curve([1.0, 1.2, 1.05, 1.5], 1e-4),
    "limit": curve(0.3 / GRID**1.5, 1e-4),
    "transition": curve(PREDICTED + 0.2, 1e-3),
    "null_model": curve(1.6 * PREDICTED, 1e-4),
}
EFFECT = 0.3


def test_there_is_one_rule_for_each_kind():
    assert {rule.kind for rule, _, _ in HOLDS.values()} == set(Kind)


@pytest.mark.parametrize("name", HOLDS)
def test_agrees_where_the_statement_holds(name):
    rule, predicted, measured = HOLDS[name]
    verdict = rule(Pair(predicted, measured), EFFECT)
    assert verdict.result is Result.AGREES, verdict
    assert verdict.resolution <= EFFECT


@pytest.mark.parametrize("name", HOLDS)
def test_disagrees_where_it_fails(name):
    rule, predicted, _ = HOLDS[name]
    assert rule(Pair(predicted, FAILS[name]), EFFECT).result is Result.DISAGREES


@pytest.mark.parametrize("name", HOLDS)
def test_a_nan_never_agrees(name):
    rule, predicted, measured = HOLDS[name]
    if isinstance(measured, Samples):
        measured = Samples(measured.values.at[5, 1].set(jnp.nan))
    else:
        measured = dataclasses.replace(measured, value=measured.value.at[1].set(jnp.nan))
    assert rule(Pair(predicted, measured), EFFECT).result is Result.DISAGREES


@pytest.mark.parametrize("name", [name for name in HOLDS if name != "identity"])
def test_inconclusive_where_the_effect_cannot_be_seen(name):
    rule, predicted, measured = HOLDS[name]
    assert rule(Pair(predicted, measured), 1e-9).result is Result.INCONCLUSIVE


@pytest.mark.parametrize("name", [name for name in HOLDS if name != "law"])
def test_rules_of_curves_refuse_a_law(name):
    with pytest.raises(ValueError, match="curves"):
        HOLDS[name][0](Pair(law(), normal_samples(10)), EFFECT)


def test_identity_refuses_to_compare_what_has_vanished():
    verdict = IdentityRule()(Pair(curve([1.0, 0.1, 0.01, 1e-7]), curve([1.0, 0.1, 0.01, 1e-7])), EFFECT)
    assert verdict.result is Result.INCONCLUSIVE
    zero = IdentityRule()(Pair(curve(0 * ONES), curve(0 * ONES)), EFFECT)
    assert zero.result is Result.INCONCLUSIVE


def test_identity_scale_is_the_point_or_the_curve():
    predicted = curve([1.0, 1.0, 1.0, 1e-4])
    measured = curve([1.0, 1.0, 1.0, 1e-4 + 1e-16])
    assert IdentityRule(relative_to="point")(Pair(predicted, measured), EFFECT).discrepancy == pytest.approx(1e-12, 0.1)
    assert IdentityRule(relative_to="curve")(Pair(predicted, measured), EFFECT).discrepancy < 2e-16


def test_identity_looks_at_every_replicate():
    replicates = jnp.stack([PREDICTED, PREDICTED * (1 + 1e-10)])
    assert IdentityRule()(Pair(curve(PREDICTED), Curve(GRID, replicates)), EFFECT).result is Result.DISAGREES


def test_population_false_alarm_rate_is_the_level():
    level, runs = 0.05, 400
    noise = np.asarray(jax.random.normal(jax.random.key(0), (runs, 4)))
    rule = PopulationRule(level=level)
    alarms = sum(
        rule(Pair(curve(PREDICTED), curve(PREDICTED + row, 1.0)), 1e9).result is Result.DISAGREES for row in noise
    )
    assert abs(alarms - level * runs) < 4 * math.sqrt(level * runs)
    assert alarms > 0


def test_law_sees_a_wrong_variance_that_the_distance_misses():
    verdict = LawRule()(Pair(law(variance=1.2), normal_samples(4000)), EFFECT)
    assert verdict.result is Result.DISAGREES
    assert verdict.discrepancy < verdict.resolution


@pytest.mark.parametrize(
    ("value", "violations"), [([0.9, np.nan, 0.2, 0.1], 1), ([np.inf, 0.4, 0.2, 0.1], 1), ([2.0, 2.0, 2.0, 2.0], 4)]
)
def test_bound_counts_injected_violations(value, violations):
    verdict = BoundRule()(Pair(curve(PREDICTED), curve(value)), EFFECT)
    assert verdict.discrepancy == violations / 4
    assert verdict.result is Result.DISAGREES


def test_bound_that_is_infinite_everywhere_proves_nothing():
    assert BoundRule()(Pair(curve(jnp.inf * ONES), curve(ONES)), EFFECT).result is Result.INCONCLUSIVE


def test_local_needs_the_failure_beyond_the_horizon():
    rule = LocalRule(level=0.1, horizon=3.0)
    too_good = rule(Pair(curve(ONES), curve([1.0, 1.01, 1.01, 1.01], 1e-4)), EFFECT)
    assert too_good.result is Result.DISAGREES
    assert LocalRule(level=0.1, horizon=9.0)(Pair(curve(ONES), curve(ONES)), EFFECT).result is Result.INCONCLUSIVE


def test_limit_needs_three_sizes():
    two = Curve(GRID[:2], jnp.array([0.2, 0.1]))
    rule = LimitRule(exponent=-1.0, band=0.1)
    assert rule(Pair(Curve(GRID[:2], jnp.zeros(2)), two), EFFECT).result is Result.INCONCLUSIVE


def test_null_model_can_fail_in_the_other_direction():
    rule = NullModelRule(factor=2.0, direction="under")
    assert rule(Pair(curve(PREDICTED), curve(3 * PREDICTED, 1e-4)), EFFECT).result is Result.AGREES
    assert rule(Pair(curve(3 * PREDICTED), curve(PREDICTED, 1e-4)), EFFECT).result is Result.DISAGREES


@pytest.mark.parametrize("build", [lambda: IdentityRule(relative_to="x"), lambda: NullModelRule(2.0, "sideways")])
def test_bad_options_are_refused(build):
    with pytest.raises(ValueError, match="got"):
        build()


def test_pairs_refuse_what_cannot_be_compared():
    with pytest.raises(ValueError, match="one grid"):
        Pair(curve(ONES), Curve(GRID[:2], jnp.ones(2)))
    with pytest.raises(ValueError, match="panel"):
        Pair(law(), Samples(jnp.ones((5, 2))))
    with pytest.raises(ValueError, match="Curve against"):
        Pair(law(), curve(ONES))
