"""The spectral-norm bound over four families: the configuration, injected violations, and training."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.theories.richardson_certificate import RichardsonCertificate

KEY = jax.random.key(0)
QUICK = RichardsonCertificate.quick()
FAMILIES = RichardsonCertificate.observables


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(QUICK, key=KEY)


def test_every_family_task_and_depth_is_counted(evaluation):
    assert evaluation.grid.tolist() == list(range(1, 9))
    for name in FAMILIES:
        pair, verdict = evaluation.pairs[name], evaluation.verdicts[name]
        assert pair.predicted.value.shape == (8, 64)
        assert pair.measured.value.shape == (1, 8, 64)
        assert verdict.result is Result.AGREES
        assert verdict.discrepancy == 0


def test_the_bound_is_the_power_of_a_norm_and_the_error_that_of_a_matrix(evaluation):
    operators, solutions = np.asarray(QUICK.operators), np.asarray(QUICK.solutions)
    for name, preconditioner in zip(FAMILIES, np.asarray(QUICK.preconditioners), strict=True):
        matrices = np.eye(16) - preconditioner @ operators
        for depth in (1, 8):
            norm = np.linalg.svd(matrices, compute_uv=False)[:, 0]
            bound = norm**depth * np.linalg.norm(solutions, axis=1)
            np.testing.assert_allclose(evaluation.pairs[name].predicted.value[depth - 1], bound, rtol=1e-10)
            power = np.linalg.matrix_power(matrices, depth)
            error = np.linalg.norm(np.einsum("tij,tj->ti", power, solutions), axis=1)
            np.testing.assert_allclose(evaluation.pairs[name].measured.value[0, depth - 1], error, rtol=1e-9)


def test_the_families_differ_and_all_but_softmax_are_far_from_normal():
    for first in range(4):
        for second in range(first):
            assert not np.allclose(QUICK.preconditioners[first], QUICK.preconditioners[second], atol=0.01)
    matrices = np.eye(16) - np.asarray(QUICK.preconditioners)[:, None] @ np.asarray(QUICK.operators)[None]
    radii = np.abs(np.linalg.eigvals(matrices)).max(axis=2)
    ratios = np.median(np.linalg.norm(matrices, 2, axis=(2, 3)) / radii, axis=1)
    assert (np.delete(ratios, FAMILIES.index("softmax_attention")) > 1.1).all()


def test_the_spectral_radius_is_found_out_in_three_families(evaluation):
    measured = {name: pair.measured for name, pair in evaluation.pairs.items()}
    fake = judge(QUICK, evaluation.grid, QUICK.counterfeit().predict(evaluation.grid), measured).verdicts
    for name in ("free_linear", "linear_attention", "flexformer"):
        assert fake[name].result is Result.DISAGREES
        assert fake[name].discrepancy > QUICK.effect


@pytest.mark.parametrize("value", [np.nan, np.inf, 1.01])
def test_one_injected_violation_is_counted(evaluation, value):
    """At one depth of one task: a NaN, an overflow, and an error one per cent above its bound."""
    pair = evaluation.pairs["flexformer"]
    wrong = pair.measured.value.at[0, 3, 5].set(value * pair.predicted.value[3, 5])
    measured = {name: other.measured for name, other in evaluation.pairs.items()}
    measured["flexformer"] = eqx.tree_at(lambda curve: curve.value, pair.measured, wrong)
    predicted = {name: other.predicted for name, other in evaluation.pairs.items()}
    verdict = judge(QUICK, evaluation.grid, predicted, measured).verdicts["flexformer"]
    assert verdict.result is Result.DISAGREES
    assert verdict.discrepancy == 1 / 512


def test_without_training_and_disturbance_the_free_matrix_is_the_identity():
    theory = RichardsonCertificate.quick(disturbance=0.0, size=6, held_out=4, tasks=1)
    assert jnp.array_equal(theory.preconditioners[0], jnp.eye(6))
    assert theory.operators.shape == (4, 6, 6)


@pytest.mark.slow
def test_training_lowers_the_error_of_every_family_and_breaks_no_bound():
    start, trained = (evaluate(RichardsonCertificate.quick(disturbance=0.0, steps=steps), key=KEY) for steps in (0, 60))
    for name in FAMILIES:
        assert trained.verdicts[name].result is Result.AGREES
        before, after = (np.mean(np.asarray(run.pairs[name].measured.value[0, -1]) ** 2) for run in (start, trained))
        assert after < 0.8 * before
