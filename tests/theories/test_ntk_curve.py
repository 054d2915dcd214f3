"""What the local statement about the linearised curve can tell apart."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest

from jaxsolve.curves import RegressionSolver, loss_drop, tangent_kernel
from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.theories.ntk_curve import NtkCurve

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def run():
    theory = NtkCurve.quick()
    return theory, evaluate(theory, key=KEY)


OTHER = RegressionSolver.draw(8, 12, depth=6, features=8, head_size=4, generator=np.random.default_rng(1))


def other_start(residual, parameters):
    del parameters
    return tangent_kernel(residual, OTHER.residual()[1])


def without_skip(residual, parameters):
    def held(rest):
        return residual(eqx.tree_at(lambda free: free.skip, rest, parameters.skip, is_leaf=lambda leaf: leaf is None))

    return tangent_kernel(held, eqx.tree_at(lambda free: free.skip, parameters, None))


@pytest.mark.parametrize(("tangent", "result"), [(without_skip, Result.DISAGREES), (other_start, Result.AGREES)])
def test_the_derivative_of_the_skip_matters_and_the_draw_of_the_model_does_not(run, tangent, result):
    theory, honest = run
    predicted = dataclasses.replace(theory, tangent=tangent).predict(honest.grid)
    measured = {name: pair.measured for name, pair in honest.pairs.items()}
    assert judge(theory, honest.grid, predicted, measured).verdicts["loss"].result is result


def test_the_run_inside_the_horizon_hardly_moves(run):
    _, honest = run
    near, far = loss_drop(honest.pairs["loss"].measured.value)
    assert 0.03 < near < 0.07
    assert far > 0.6
