"""The risk of a frozen decoder: its closed form, and what its test can see."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.theories.decoder_risk import DecoderRisk

KEY = jax.random.key(0)
QUICK = DecoderRisk.quick()


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(QUICK, key=KEY)


def test_the_risk_at_depth_zero_and_one(evaluation):
    """`R(0) = 1` and `R(1) = 1 − 2 Tr(P H) / K + Tr(P H² Pᵀ) / K`, averaged over operators."""
    preconditioner, operators = np.asarray(QUICK.preconditioner), np.asarray(QUICK.operators)
    product = preconditioner @ operators
    first = 1 - 2 * np.trace(product, axis1=1, axis2=2) / 16 + (product**2).sum(axis=(1, 2)) / 16
    predicted = evaluation.pairs["risk"].predicted.value
    np.testing.assert_allclose(predicted[:2], [1.0, first.mean()], rtol=1e-12)
    assert evaluation.grid.tolist() == list(range(9))


def test_training_has_paid_and_the_iteration_is_not_normal():
    untrained = DecoderRisk.quick(steps=0)
    assert jnp.array_equal(untrained.preconditioner, jnp.eye(16))
    before, after = (theory.predict(theory.grid())["risk"].value[-1] for theory in (untrained, QUICK))
    assert after < 0.8 * before
    asymmetry = QUICK.preconditioner - QUICK.preconditioner.T
    assert float(jnp.linalg.norm(asymmetry)) > 1e-2 * float(jnp.linalg.norm(QUICK.preconditioner))


def test_symmetric_products_have_the_risk_of_their_spectrum():
    """With `P = I` the iteration matrix is symmetric, and the counterfeit is right."""
    theory = eqx.tree_at(lambda theory: theory.preconditioner, QUICK, jnp.eye(16))
    right, wrong = (one.predict(theory.grid())["risk"].value for one in (theory, theory.counterfeit()))
    np.testing.assert_allclose(wrong, right, rtol=1e-10)


@pytest.mark.parametrize("fault", ["half", "one layer more", "five per cent"])
def test_a_wrong_risk_is_found(evaluation, fault):
    measured = {"risk": evaluation.pairs["risk"].measured}
    right = evaluation.pairs["risk"].predicted
    wrong = {
        "half": right.value / 2,
        "one layer more": jnp.append(right.value[1:], 0.9 * right.value[-1]),
        "five per cent": right.value.at[-1].multiply(1.05),
    }[fault]
    verdict = judge(QUICK, evaluation.grid, {"risk": dataclasses.replace(right, value=wrong)}, measured)
    assert verdict.verdicts["risk"].result is Result.DISAGREES


def test_solutions_with_another_covariance_are_outside_the_statement(evaluation):
    """Twice the solutions: four times the risk."""
    curve = evaluation.pairs["risk"].measured
    scaled = dataclasses.replace(curve, value=4 * curve.value, standard_error=4 * curve.standard_error)
    predicted = {"risk": evaluation.pairs["risk"].predicted}
    assert judge(QUICK, evaluation.grid, predicted, {"risk": scaled}).verdicts["risk"].result is Result.DISAGREES
