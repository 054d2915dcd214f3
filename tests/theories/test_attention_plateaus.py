"""Plateaus of rank-one attention: the order in which they are visited, and how the flow and the quadrature agree."""

import itertools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.theories.attention_plateaus import AttentionPlateaus

KEY = jax.random.key(0)
QUICK = AttentionPlateaus.quick()
PLATEAUS = np.array([1.0, 0.6406, 0.3774, 0.2098, 0.1360])
DENOMINATORS = np.asarray(QUICK.eigenvalues) * (1 + (1 + 1 / np.asarray(QUICK.eigenvalues)) / 31)


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(QUICK, key=KEY)


def test_training_rests_on_every_plateau_in_order(evaluation):
    loss = 2 * np.asarray(evaluation.pairs["loss"].measured.value)[0]
    assert (np.diff(loss) < 1e-12).all()
    near = np.abs(loss[:, None] - PLATEAUS[None]) < 2e-3
    visits = [np.flatnonzero(column) for column in near.T]
    assert all(len(visit) >= 4 for visit in visits)
    assert all(before[-1] < after[0] for before, after in itertools.pairwise(visits))
    between = (~near.any(axis=1)).sum()
    assert between < 0.2 * len(loss)


def test_the_flow_visits_the_same_plateaus():
    """The scalar equation in continuous time, by an adaptive method, at the times when the recursion rests."""
    eigenvalues, denominators = QUICK.eigenvalues, jnp.asarray(DENOMINATORS)

    def velocity(time, heads, _):
        return eigenvalues**2 * heads**2 * (1 - denominators * heads**3)

    times = jnp.array([20.0, 160.0, 330.0, 1000.0, 2900.0])
    flow = diffrax.diffeqsolve(
        diffrax.ODETerm(velocity), diffrax.Tsit5(), 0.0, 3000.0, 0.1, jnp.full(4, QUICK.start),
        saveat=diffrax.SaveAt(ts=times), stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-10),
    )  # fmt: skip
    gains = np.asarray(flow.ys) ** 3
    loss = 1 + ((DENOMINATORS * gains - 2) * gains * np.asarray(eigenvalues) ** 2).sum(axis=1)
    np.testing.assert_allclose(loss, PLATEAUS, atol=2e-3)


def test_the_quadrature_has_the_moments_of_gaussian_prompts():
    covariates, weights = (np.asarray(array) for array in QUICK._quadrature())
    assert covariates.shape == (81, 4)
    basis = covariates @ np.asarray(QUICK.eigenvectors)
    eigenvalues = np.asarray(QUICK.eigenvalues)
    np.testing.assert_allclose(np.einsum("p,pi,pj->ij", weights, basis, basis), np.diag(eigenvalues), atol=1e-14)
    norms = (basis**2).sum(axis=1)
    fourth = np.einsum("p,p,pi,pj->ij", weights, norms, basis, basis)
    np.testing.assert_allclose(fourth, np.diag(eigenvalues * (2 * eigenvalues + 1)), atol=1e-14)


def test_the_heads_end_at_the_best_gains(evaluation):
    final = np.asarray(evaluation.pairs["gain"].measured.value)[0, -1]
    vectors = np.asarray(QUICK.eigenvectors)
    np.testing.assert_allclose(vectors.T @ final @ vectors, np.diag(1 / DENOMINATORS), atol=1e-11)
    assert np.abs(final - np.diag(np.diag(final))).max() > 0.1


def test_the_counterfeit_is_found_by_both_observables(evaluation):
    measured = {name: pair.measured for name, pair in evaluation.pairs.items()}
    fake = judge(QUICK, evaluation.grid, QUICK.counterfeit().predict(evaluation.grid), measured)
    assert all(verdict.result is Result.DISAGREES for verdict in fake.verdicts.values())


def test_coordinates_change_the_matrix_and_not_the_loss():
    short, other = (AttentionPlateaus.quick(steps=400, instance_seed=seed) for seed in (25, 26))
    measured = other.simulate(other.grid(), key=KEY)
    verdicts = judge(short, short.grid(), short.predict(short.grid()), measured).verdicts
    assert verdicts["gain"].result is Result.DISAGREES
    assert verdicts["loss"].result is Result.AGREES
