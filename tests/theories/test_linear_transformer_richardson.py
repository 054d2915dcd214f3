"""The linear transformer as an iteration: what its configuration promises, and what each part of a layer is for."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.theories.linear_transformer_richardson import LinearTransformerRichardson

QUICK = LinearTransformerRichardson.quick()
KEY = jax.random.key(0)
MEASURED = QUICK.simulate(QUICK.grid(), key=KEY)


def verdicts(theory):
    grid = theory.grid()
    return judge(theory, grid, theory.predict(grid), MEASURED).verdicts


def test_both_observables_agree_to_thirteen_digits():
    for verdict in verdicts(QUICK).values():
        assert verdict.result is Result.AGREES
        assert verdict.discrepancy < 1e-13


def test_the_weights_are_not_symmetric_and_the_layers_still_move():
    weights = np.asarray(QUICK.weights)
    assert np.linalg.norm(weights - weights.T) > 0.2 * np.linalg.norm(weights)
    output = np.asarray(MEASURED["output"].value)[0]
    moves = np.linalg.norm(np.diff(output, axis=0), axis=1) / np.linalg.norm(output[-1])
    assert (moves > 1e-3).all()


def test_many_layers_end_at_least_squares():
    theory = LinearTransformerRichardson.quick(layers=1000)
    output = np.asarray(theory.sample(theory.grid(), key=KEY)["output"].value)[-1]
    fits = [np.linalg.lstsq(x, y)[0] for x, y in zip(theory.covariates, theory.labels, strict=True)]
    np.testing.assert_allclose(output, np.einsum("pd,pd->p", fits, theory.queries), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("options", [{"noise": 0.0}, {"prompts": 1, "examples": 3, "size": 5}, {"instance_seed": 1}])
def test_holds_in_other_configurations(options):
    for verdict in evaluate(LinearTransformerRichardson.quick(**options), key=KEY).verdicts.values():
        assert verdict.result is Result.AGREES


@pytest.mark.parametrize(
    "fault",
    [
        lambda theory: theory.counterfeit(),
        lambda theory: eqx.tree_at(lambda one: one.weights, theory, (1 + 1e-6) * theory.weights),
        lambda theory: eqx.tree_at(lambda one: one.labels, theory, theory.labels.at[0, 0].add(1e-6)),
    ],
    ids=["no transpose", "weights", "one label"],
)
def test_a_wrong_iteration_is_found(fault):
    assert all(verdict.result is Result.DISAGREES for verdict in verdicts(fault(QUICK)).values())


def test_the_query_does_not_disturb_the_residuals():
    """Without its mask it would: its label is not zero after the first layer."""
    moved = eqx.tree_at(lambda one: one.queries, QUICK, 10 * QUICK.queries)
    residual = moved.sample(moved.grid(), key=KEY)["residual"].value
    np.testing.assert_allclose(residual, MEASURED["residual"].value[0], rtol=0, atol=1e-13)
    assert float(jnp.abs(moved.sample(moved.grid(), key=KEY)["output"].value - MEASURED["output"].value[0]).max()) > 1
