"""The adjoint identity on the airfoil: what its configuration and its counterfeit promise."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.solver import adjoint_gradient, rollout
from jaxsolve.theories.adjoint_gradient import AdjointGradient

QUICK = AdjointGradient.quick()


def asymmetry(matrix):
    return np.linalg.norm(matrix - np.swapaxes(matrix, -1, -2)) / np.linalg.norm(matrix)


def test_neither_operators_nor_preconditioner_are_symmetric():
    assert asymmetry(np.asarray(QUICK.operators)) > 0.1
    assert asymmetry(np.asarray(QUICK.preconditioner)) > 0.1


def test_the_iteration_has_not_converged():
    sides = jnp.einsum("tij,tj->ti", QUICK.operators, QUICK.solutions)
    final = rollout(QUICK.preconditioner, QUICK.operators, sides, QUICK.initial, depth=max(QUICK.depths))
    share = np.linalg.norm(final - QUICK.solutions) / np.linalg.norm(QUICK.initial - QUICK.solutions)
    assert 1e-3 < share < 0.1


@pytest.mark.parametrize("options", [{"depths": (1, 2)}, {"instance_seed": 1}, {"tasks": 2, "depths": (5,)}])
def test_holds_in_other_configurations(options):
    evaluation = evaluate(AdjointGradient.quick(**options), key=jax.random.key(0))
    assert evaluation.verdicts["gradient"].result is Result.AGREES


@pytest.mark.parametrize("fault", ["missing transposes", "last layer dropped", "one part in a million"])
def test_a_wrong_recursion_is_found(fault):
    def scaled(*arguments, depth):
        loss, gradient = adjoint_gradient(*arguments, depth=depth)
        return loss, (1 + 1e-6) * gradient

    faults = {
        "missing transposes": QUICK.counterfeit().recursion,
        "last layer dropped": lambda *arguments, depth: adjoint_gradient(*arguments, depth=depth - 1),
        "one part in a million": scaled,
    }
    grid = QUICK.grid()
    wrong = dataclasses.replace(QUICK, recursion=faults[fault])
    measured = QUICK.simulate(grid, key=jax.random.key(0))
    verdict = judge(wrong, grid, wrong.predict(grid), measured).verdicts["gradient"]
    assert verdict.result is Result.DISAGREES


def test_the_counterfeit_is_right_where_no_adjoint_is_pulled_back():
    theory = AdjointGradient.quick(depths=(1,))
    right, wrong = (one.predict(theory.grid())["gradient"].value for one in (theory, theory.counterfeit()))
    assert np.linalg.norm(right - wrong) <= 1e-13 * np.linalg.norm(right)
