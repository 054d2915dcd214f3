"""What the pictures of a trained solver show, tested as inequalities: gains, paths, attention modes, traces, slack."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import Result, evaluate
from jaxsolve.theories.attention_modes import AttentionModes
from jaxsolve.theories.bound_slack import BoundSlack
from jaxsolve.theories.learned_preconditioner import LearnedPreconditioner
from jaxsolve.theories.mixed_traces import MixedTraces
from jaxsolve.theories.phase_portrait import PhasePortrait

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def trained():
    return LearnedPreconditioner.quick()


def test_the_reference_of_the_gains_is_plain_richardson(trained):
    """At `P = I`: `|1 − λ|` by mode, and the risk `tr (I − H)^{2L} / K` of unseen tasks."""
    predicted = trained.predict(trained.grid())
    eigenvalues = np.linalg.eigvalsh(np.asarray(trained.mean))
    unseen = np.linalg.eigvalsh(np.asarray(trained.unseen))
    assert float(predicted["gain_error"].value[0]) == pytest.approx(np.abs(1 - eigenvalues).mean(), rel=1e-12)
    assert float(predicted["contraction"].value[0]) == pytest.approx(np.abs(1 - eigenvalues).max(), rel=1e-12)
    assert float(predicted["unseen_risk"].value[0]) == pytest.approx(((1 - unseen) ** 16).mean(), rel=1e-10)


def test_a_matrix_that_knows_a_few_tasks_by_heart_is_found_out():
    overfitted = evaluate(LearnedPreconditioner.quick(tasks=2, unseen=16, records=2), key=KEY)
    assert overfitted.verdicts["unseen_risk"].result is Result.DISAGREES


def test_the_bound_on_a_detour_is_reached_by_no_start_of_any_matrix():
    """Also for matrices that nobody trained, as long as `ε < g ≤ 1`."""
    random = np.random.default_rng(4)
    theory = PhasePortrait.quick(steps=1)
    for spread in (0.02, 0.2):
        product = 0.7 * (np.eye(2) + spread * random.standard_normal((24, 2, 2)))
        operators = jnp.asarray(product)
        near = dataclasses.replace(theory, operators=operators, near_inverse=jnp.eye(2), learned=jnp.eye(2))
        verdict = evaluate(near, key=KEY).verdicts["near_inverse"]
        assert verdict.result is Result.AGREES


def test_a_matrix_trained_through_two_layers_leaves_the_scope_of_the_bound():
    deep = PhasePortrait.quick(trained_depth=2)
    predicted = deep.predict(deep.grid())["learned"].value
    measured = deep.sample(deep.grid(), key=KEY)["learned"].value
    assert np.isinf(predicted).any()
    assert float(measured.max()) > 1.5


def test_the_trace_inequality_is_reached_by_aligned_attention():
    """With `A` a function of `R` the correction is the bound; its records are replaced by such matrices."""
    theory = AttentionModes.quick(steps=2, records=1)
    squares = np.einsum("tij,tkj->tik", theory.operators, theory.operators)
    values, vectors = np.linalg.eigh(squares.mean(axis=0))
    aligned = jnp.asarray(vectors @ np.diag(values**2) @ vectors.T)
    heads = jnp.stack([theory.heads[0], aligned])
    theory = dataclasses.replace(theory, heads=heads)
    predicted = theory.predict(theory.grid())["correction"].value
    measured = theory.sample(theory.grid(), key=KEY)["correction"].value
    np.testing.assert_allclose(measured, predicted, rtol=1e-10)


def test_traces_need_a_spread_of_eigenvalues():
    assert evaluate(MixedTraces.quick(), key=KEY).verdicts["trace"].result is Result.AGREES
    narrow = evaluate(MixedTraces.quick(smallest=0.5), key=KEY)
    assert {verdict.result for verdict in narrow.verdicts.values()} == {Result.DISAGREES}


def test_a_normal_contraction_has_a_tight_certificate():
    """With `P = H^{−1}/2` of one operator every error is halved in every direction: no slack is left."""
    theory = BoundSlack.quick(steps=1, tasks=2, held_out=64)
    one = jnp.broadcast_to(theory.operators[:1], theory.operators.shape)
    half = dataclasses.replace(theory, operators=one, preconditioner=0.5 * jnp.linalg.inv(one[0]))
    verdict = evaluate(half, key=KEY).verdicts["spectral_norm"]
    assert verdict.result is Result.DISAGREES
    assert verdict.discrepancy == pytest.approx(1.0, abs=0.2)
