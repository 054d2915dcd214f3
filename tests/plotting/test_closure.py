"""Figures of closed population dynamics, and the arrays behind them."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxsolve.plotting import closure_curves, draw_closure_curves, draw_stability_map, stability_map

SPREAD = np.array([0.3, 1.0, 1.7])
TASKS = np.stack(np.meshgrid(SPREAD, SPREAD), axis=-1).reshape(-1, 2)


def curves(**changes):
    options = {"disturbance": np.zeros((2, 2)), "depth": 2, "learning_rate": 0.5, "steps": 60} | changes
    return closure_curves(np.full(2, 0.4), TASKS, **options)


def test_without_a_disturbance_both_runs_are_one():
    data = curves()
    np.testing.assert_allclose(data.full, data.closed, rtol=1e-12)
    assert data.off_diagonal.max() == 0
    assert data.closed[-1] < data.closed[0]


def test_a_disturbance_shows_off_the_diagonal():
    data = curves(disturbance=np.array([[0, 1e-2], [0, 0]]))
    assert data.off_diagonal[0] == pytest.approx(1e-2 / 0.4)


def test_the_map_has_the_transition_of_depth_three():
    """A saddle at small spreads and a minimum at large ones; at depth 2 a minimum everywhere, at depth 4 a saddle."""
    data = stability_map([2, 3, 4], np.array([0.2, 0.8]))
    np.testing.assert_array_equal(data.ratios > 1, [[False, True, True], [False, False, True]])


def test_titles_tell_the_verdict():
    first, second = Figure().subplots(1, 2)
    draw_closure_curves(first, curves(), steps=60)
    draw_stability_map(second, stability_map([2, 3], np.array([0.2, 0.8])))
    assert first.get_title(loc="left").startswith("ends at 1.000 of the closure")
    assert second.get_title(loc="left") == "a saddle at 1 of 4 points"
    assert all(axis.get_xlabel() and axis.get_ylabel() and axis.get_legend() for axis in (first, second))
