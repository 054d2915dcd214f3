"""The empirical Bernstein bound: coverage on laws that need its last term, and the losses of a decoder."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.certificates import empirical_bernstein
from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.theories.empirical_bernstein import DecoderLosses, EmpiricalBernstein

KEY = jax.random.key(0)
QUICK = EmpiricalBernstein.quick()
RISKS = (0.02, 0.2)


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(QUICK, key=KEY)


def bounds(losses):
    """The certificate of each sample, in NumPy."""
    clipped, logarithm, count = np.minimum(np.asarray(losses), 10), np.log(40), losses.shape[1]
    deviation = np.sqrt(2 * clipped.var(axis=1, ddof=1) * logarithm / count)
    return clipped.mean(axis=1) + deviation, 70 * logarithm / 3 / (count - 1)


def test_the_bound_covers_and_without_its_last_term_it_does_not():
    """Misses a third of the samples of the first law and a quarter of the second."""
    for losses, risk, missed in zip(QUICK.losses, RISKS, (0.36, 0.27), strict=False):
        without, last = bounds(losses)
        assert np.mean(without + last < risk) <= QUICK.confidence_delta
        assert abs(np.mean(without < risk) - missed) < 0.05


def test_a_quantile_holds_exactly_where_enough_samples_do(evaluation):
    """The predicted number is not below the risk if and only if at most a share δ of bounds is."""
    for theory in (QUICK, QUICK.counterfeit()):
        predicted = np.asarray(theory.predict(theory.grid())["clipped_risk"].value)
        for losses, risk, quantile in zip(QUICK.losses, RISKS, predicted, strict=False):
            without, last = bounds(losses)
            values = without + (last if theory is QUICK else 0)
            assert (quantile >= risk) == (np.mean(values < risk) <= 0.05)
    assert evaluation.verdicts["clipped_risk"].result is Result.AGREES


def test_the_bound_of_the_decoder_is_that_of_its_only_sample(evaluation):
    (losses,) = QUICK.losses[2]
    certificate = empirical_bernstein(losses, clip=10.0, confidence_delta=0.05)
    pair = evaluation.pairs["clipped_risk"]
    np.testing.assert_allclose(pair.predicted.value[2], certificate.bound, rtol=1e-14)
    assert losses.shape == (512,)
    assert 0.168 < float(certificate.bound) < 0.3
    assert abs(float(pair.measured.value[0, 2]) - float(certificate.mean)) < 0.3 * float(certificate.mean)


def test_rare_losses_are_clipped(evaluation):
    np.testing.assert_allclose(evaluation.pairs["clipped_risk"].measured.value[0, :2], RISKS, rtol=1e-14)
    assert float(QUICK.losses[0].max()) == 20


def test_losses_of_a_decoder_that_does_nothing_are_those_of_the_start():
    law = DecoderLosses(jnp.zeros((4, 4)), jnp.ones(4), 3, 2000)
    solutions = jnp.asarray(np.random.default_rng(0).standard_normal((5, 4)))
    operators = jnp.broadcast_to(jnp.eye(4), (5, 4, 4))
    np.testing.assert_allclose(law.losses(operators, solutions), np.mean(np.asarray(solutions) ** 2, axis=1))
    assert abs(float(law.clipped_risk(1e6, key=KEY)) - 1) < 5 * (2 / 4 / 2000) ** 0.5


def test_the_counterfeit_fails_on_both_rare_laws_and_not_on_the_decoder(evaluation):
    measured = {"clipped_risk": evaluation.pairs["clipped_risk"].measured}
    predicted = QUICK.counterfeit().predict(evaluation.grid)
    wrong = np.asarray(predicted["clipped_risk"].value) < np.asarray(measured["clipped_risk"].value[0])
    assert wrong.tolist() == [True, True, False]
    verdict = judge(QUICK, evaluation.grid, predicted, measured).verdicts["clipped_risk"]
    assert verdict.result is Result.DISAGREES


@pytest.mark.parametrize("fault", ["biased variance", "a lower confidence"])
def test_a_looser_reading_of_the_theorem_gives_another_bound(fault):
    """The unbiased variance and `ln(2/δ)` matter: on ten losses both changes lower the bound visibly."""
    losses = jnp.asarray(np.random.default_rng(1).exponential(size=(1, 10)))
    theory = dataclasses.replace(QUICK, laws=QUICK.laws[:1], losses=(losses,))
    (value,) = theory.predict(theory.grid())["clipped_risk"].value
    without, last = bounds(losses)
    clipped = np.minimum(np.asarray(losses[0]), 10)
    wrong = {
        "biased variance": clipped.mean() + np.sqrt(2 * clipped.var() * np.log(40) / 10) + last,
        "a lower confidence": clipped.mean() + np.sqrt(2 * clipped.var(ddof=1) * np.log(20) / 10) + last,
    }[fault]
    np.testing.assert_allclose(value, without[0] + last, rtol=1e-13)
    assert wrong < 0.999 * float(value)
