"""The best gains: their closed form, the fit that measures them, and what the test can see."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.theories.attention_gain import AttentionGain

KEY = jax.random.key(3)
QUICK = AttentionGain.quick()


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(QUICK, key=KEY)


def test_losses_of_the_plateaus():
    loss = np.asarray(QUICK.predict(QUICK.grid())["loss"].value)
    np.testing.assert_allclose(loss, [1.0, 0.6406, 0.3774, 0.2098, 0.1360], atol=5e-5)


def test_gains_of_long_prompts_are_the_inverse():
    long = AttentionGain.quick(examples=10**9)
    gains = np.diagonal(long.predict(long.grid())["gain"].value[-1])
    np.testing.assert_allclose(gains, 1 / np.asarray(long.eigenvalues), rtol=1e-7)


def test_the_denominator_is_a_fourth_moment():
    """`E[β_d²] = λ_d a_d`, against the sample covariance of Gaussian vectors drawn by other means."""
    generator, eigenvalues, examples = np.random.default_rng(0), np.asarray(QUICK.eigenvalues), 5
    vectors = generator.standard_normal((40_000, examples, 4)) * np.sqrt(eigenvalues)
    covariance = np.einsum("pni,pnj->pij", vectors, vectors) / examples
    squares = np.einsum("pij,pij->pi", covariance, covariance)
    expected = eigenvalues * np.asarray(QUICK.denominators(QUICK.eigenvalues, examples))
    deviation = (squares.mean(axis=0) - expected) / (squares.std(axis=0) / 200)
    assert np.abs(deviation).max() < 4
    wrong = eigenvalues * np.asarray(QUICK.counterfeit().denominators(QUICK.eigenvalues, examples))
    assert np.abs((squares.mean(axis=0) - wrong) / (squares.std(axis=0) / 200)).min() > 4


def test_both_observables_agree_and_resolve_the_effect(evaluation):
    for verdict in evaluation.verdicts.values():
        assert verdict.result is Result.AGREES
        assert verdict.resolution < QUICK.effect


def test_each_observable_finds_the_missing_term(evaluation):
    measured = {name: pair.measured for name, pair in evaluation.pairs.items()}
    fake = judge(QUICK, evaluation.grid, QUICK.counterfeit().predict(evaluation.grid), measured)
    assert all(verdict.result is Result.DISAGREES for verdict in fake.verdicts.values())


def test_directions_out_of_use_have_no_gain(evaluation):
    for side in (evaluation.pairs["gain"].predicted, evaluation.pairs["gain"].measured):
        for used, matrix in enumerate(np.asarray(side.value)):
            assert not matrix[used:].any()
            assert not matrix[:, used:].any()


def test_the_scatter_of_a_fit_adds_nothing_to_the_loss():
    """With few prompts a fit loses much on new ones; the product of two independent fits does not."""
    small = AttentionGain.quick(prompts=256, replicates=512)
    pair = evaluate(small, key=KEY).pairs["loss"]
    excess = np.asarray(pair.measured.value - pair.predicted.value)[-1]
    naive = 16 / 256 * float(pair.predicted.value[-1])
    assert abs(excess) < 4 * float(pair.measured.standard_error[-1]) < naive


def test_eigenvalues_are_put_in_falling_order():
    mixed = AttentionGain.quick(eigenvalues=(0.1, 0.4, 0.3, 0.2))
    assert jnp.array_equal(mixed.eigenvalues, QUICK.eigenvalues)
