"""The matrix-power identity on the airfoil: what its configuration and its counterfeit promise."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.theories.richardson_identity import RichardsonIdentity

QUICK = RichardsonIdentity.quick()


def test_the_iteration_contracts_but_has_not_converged():
    errors = np.asarray(QUICK.predict(QUICK.grid())["error"].value)
    norms = np.linalg.norm(errors.reshape(len(errors), -1), axis=1)
    assert np.array_equal(errors[0], np.asarray(QUICK.initial - QUICK.solutions))
    assert 1e-3 * norms[0] < norms[-1] < 0.1 * norms[0]


def test_the_counterfeit_has_the_same_spectrum():
    fake = QUICK.counterfeit()
    honest, wrong = (
        np.sort(np.linalg.eigvals(np.asarray(theory.preconditioners[0] @ theory.operators[0])).real)
        for theory in (QUICK, fake)
    )
    assert np.allclose(honest, wrong, rtol=1e-9)
    right, other = (np.asarray(theory.predict(theory.grid())["error"].value)[1] for theory in (QUICK, fake))
    assert np.linalg.norm(right - other) > 0.1 * np.linalg.norm(right)


@pytest.mark.parametrize("options", [{"sigma": 2.0, "step": 0.5}, {"instance_seed": 1}, {"tasks": 1, "depth": 3}])
def test_holds_in_other_configurations(options):
    evaluation = evaluate(RichardsonIdentity.quick(**options), key=jax.random.key(0))
    assert evaluation.verdicts["error"].result is Result.AGREES


def test_a_preconditioner_off_by_a_millionth_is_found():
    other = eqx.tree_at(lambda theory: theory.preconditioners, QUICK, (1 + 1e-6) * QUICK.preconditioners)
    grid = QUICK.grid()
    verdicts = judge(other, grid, other.predict(grid), QUICK.simulate(grid, key=jax.random.key(0))).verdicts
    assert verdicts["error"].result is Result.DISAGREES


def test_depths_beyond_the_last_are_not_made_up():
    grid = jnp.array([0.0, 17.0])
    for curve in (QUICK.predict(grid)["error"], QUICK.sample(grid, key=jax.random.key(0))["error"]):
        assert np.isfinite(curve.value[0]).all()
        assert np.isnan(curve.value[1]).all()
