"""From prompt to solution on other links and meshes: log-affine coefficients, and triangles around an airfoil."""

import jax
import pytest

from jaxsolve.datasets import airfoil_mesh
from jaxsolve.evidence import Result, judge
from jaxsolve.pde import ParametricDiffusion, TriangleMesh, cosine_modes, interval_grid, triangle_grid
from jaxsolve.theories.coefficient_recovery import CoefficientRecovery
from jaxsolve.theories.parametric_risk import ParametricRisk

LINE, AIRFOIL = interval_grid(31), triangle_grid(TriangleMesh(*airfoil_mesh()))
SETTINGS = {
    "log-affine": (ParametricDiffusion(LINE, cosine_modes(LINE), link="log-affine"), 16),
    "airfoil": (ParametricDiffusion(AIRFOIL, cosine_modes(AIRFOIL)), 4),
    "log-affine airfoil": (ParametricDiffusion(AIRFOIL, cosine_modes(AIRFOIL), link="log-affine"), 2),
}


def verdicts(theory):
    """Of the theory, and of its counterfeit against the same simulation."""
    grid = theory.grid()
    measured = theory.simulate(grid, key=jax.random.key(0))
    return [judge(theory, grid, side.predict(grid), measured).verdicts for side in (theory, theory.counterfeit())]


@pytest.mark.parametrize("name", SETTINGS)
def test_risk(name):
    family, tasks = SETTINGS[name]
    honest, counterfeit = verdicts(ParametricRisk.quick(family=family, tasks=tasks, depth=12))
    assert honest["risk"].result is Result.AGREES
    assert counterfeit["risk"].result is Result.DISAGREES


@pytest.mark.parametrize(("name", "tasks", "replicates"), [("log-affine", 64, 100), ("airfoil", 8, 600)])
def test_recovery(name, tasks, replicates):
    options = {"tasks": tasks, "replicates": replicates, "noise": (6.2e-4, 1e-2, 3.0)}
    honest, counterfeit = verdicts(CoefficientRecovery.quick(family=SETTINGS[name][0], **options))
    assert {verdict.result for verdict in honest.values()} == {Result.AGREES}
    assert {verdict.result for verdict in counterfeit.values()} == {Result.DISAGREES}
