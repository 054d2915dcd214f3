"""Figures of feedback: their arrays, and what they say of themselves."""

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxsolve.feedback import FixedAxisFeedback, IsotropicFeedback
from jaxsolve.plotting import (
    AlignmentTails,
    alignment_tails,
    draw_alignment_tails,
    draw_worst_coverage,
    worst_coverages,
)


def test_chances_are_those_of_the_law():
    data = alignment_tails(np.array([3.0, 100.0]), draws=20_000, points=6, key=jax.random.key(0))
    np.testing.assert_allclose(data.predicted[0], 1 - np.sqrt(data.squared_cosines[0]), atol=1e-12)
    error = np.sqrt(data.predicted * (1 - data.predicted) / data.draws)
    assert (np.abs(data.measured - data.predicted) <= 5 * error + 1e-12).all()


def test_a_deviation_is_told_in_standard_errors():
    axis = Figure().subplots()
    chance = np.array([[0.5, 0.2]])
    data = AlignmentTails(np.array([64.0]), np.array([[0.01, 0.02]]), chance, chance + np.array([[0.05, 0]]), 10_000)
    draw_alignment_tails(axis, data)
    assert "10.0 standard errors" in axis.get_title(loc="left")


def test_coverages_are_shares_of_the_minimax_value():
    ensembles = {"isotropic": IsotropicFeedback((2, 4)), "fixed": FixedAxisFeedback((2, 4))}
    data = worst_coverages(ensembles, (100, 4000), key=jax.random.key(1))
    np.testing.assert_allclose(data.exact, [1, 0])
    assert data.sampled[0, 0] < data.sampled[0, 1] < 1
    assert data.sampled[0, 1] == pytest.approx(data.edge[1], rel=0.05)
    assert (data.sampled[1] == 0).all()
    axis = Figure().subplots()
    draw_worst_coverage(axis, data)
    assert "0 of 4 above" in axis.get_title(loc="left")


def test_coverages_need_one_dimension():
    with pytest.raises(ValueError, match="one dimension"):
        worst_coverages({"a": IsotropicFeedback((2, 4)), "b": IsotropicFeedback((2, 2))}, (10,), key=jax.random.key(0))
