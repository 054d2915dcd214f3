"""The recursion of the parameters: every family, and what its test can see."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.preconditioners import FreeLinear, LinearAttention, OperatorTokens, SoftmaxAttention, position_tokens
from jaxsolve.theories.parameter_recursion import ParameterRecursion

KEY = jax.random.key(0)
QUICK = ParameterRecursion.quick()
SHORT = dataclasses.replace(QUICK, steps=12, record_every=6)


def test_parameters_move_and_the_loss_stays_above_rounding():
    predicted = QUICK.predict(QUICK.grid())
    moved = np.linalg.norm(np.asarray(predicted["displacement"].value), axis=1)
    assert (np.diff(moved) > 0).all()
    assert moved[-1] > 0.01 * np.linalg.norm(predicted["parameters"].value[-1])
    assert predicted["parameters"].value.shape == (5, 2 * 2 * 8 * 4 + 2 + 1 + 2 * 2 * 4 * 4 + 2 * 4)


def with_family(name):
    random, tokens = np.random.default_rng(1), position_tokens(6)
    if name == "softmax-per-task":
        tokens = OperatorTokens(tokens, random.standard_normal((6, 2)))
    weights = random.standard_normal((2, 2, tokens.shape[1], 4)) / tokens.shape[1] ** 0.5
    attention = (tokens, *weights, np.full(2, 0.2), np.asarray(0.5))
    preconditioner = {
        "free": lambda: FreeLinear(0.5 * np.eye(6)),
        "linear": lambda: LinearAttention(*attention),
        "softmax-per-task": lambda: SoftmaxAttention(*attention),
    }[name]()
    return dataclasses.replace(SHORT, preconditioner=preconditioner)


@pytest.mark.parametrize("name", ["free", "linear", "softmax-per-task"])
def test_holds_for_every_family(name):
    for verdict in evaluate(with_family(name), key=KEY).verdicts.values():
        assert verdict.result is Result.AGREES
        assert verdict.discrepancy < 1e-12


def test_the_counterfeit_is_right_where_the_preconditioner_is_linear_in_its_parameters():
    theory = with_family("free")
    right, wrong = (one.predict(theory.grid())["displacement"].value for one in (theory, theory.counterfeit()))
    np.testing.assert_allclose(wrong, right, rtol=0, atol=1e-14)


def test_the_counterfeit_is_right_for_one_step_and_wrong_for_two():
    theory = dataclasses.replace(QUICK, steps=2, record_every=1)
    right, wrong = (one.predict(theory.grid())["displacement"].value for one in (theory, theory.counterfeit()))
    np.testing.assert_allclose(wrong[0], right[0], rtol=0, atol=1e-15)
    assert float(jnp.linalg.norm(wrong[1] - right[1])) > 1e-4 * float(jnp.linalg.norm(right[1]))


@pytest.mark.parametrize("part", ["learning_rate", "operators"])
def test_an_ingredient_off_by_a_millionth_is_found(part):
    grid, measured = SHORT.grid(), SHORT.simulate(SHORT.grid(), key=KEY)
    wrong = eqx.tree_at(lambda theory: getattr(theory, part), SHORT, (1 + 1e-6) * getattr(SHORT, part))
    assert judge(wrong, grid, wrong.predict(grid), measured).verdicts["displacement"].result is Result.DISAGREES


def test_an_unstable_rate_disagrees_and_raises_nothing():
    theory = eqx.tree_at(lambda theory: theory.learning_rate, SHORT, jnp.asarray(1e6))
    assert evaluate(theory, key=KEY).verdicts["parameters"].result is Result.DISAGREES
