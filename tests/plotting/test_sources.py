"""Figures of error sources: their arrays, and what they say of themselves."""

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxsolve._results import RESULTS
from jaxsolve.certificates import Diagnosis, prompted_diffusion
from jaxsolve.plotting import (
    cause_shares,
    composition_path,
    draw_composition,
    draw_diagnosis,
    draw_scaling_axis,
    scaling_axis,
)

DRAWN = prompted_diffusion(8, size=6, noise=0.3, generator=np.random.default_rng(0))
SIDES = np.einsum("tij,tj->ti", DRAWN.operators, DRAWN.solutions)
SAVED = np.stack([step * np.linalg.inv(DRAWN.reference) for step in (0.2, 0.9)])


def diagnosis(parts):
    return Diagnosis(
        total=jnp.array(2.0),
        parts=jnp.asarray(parts),
        standard_errors=jnp.full(4, 0.1),
        remainder=jnp.array(0.2),
        converged_depth=jnp.array(3),
        result=RESULTS.successful,
    )


def test_a_path_has_the_errors_of_runs_by_hand():
    data = composition_path(SAVED, DRAWN.estimates, SIDES, DRAWN.solutions, np.array([0, 7]), depth=2)
    for row, matrix in enumerate(SAVED):
        iterate = np.zeros_like(SIDES)
        for _ in range(2):
            iterate = iterate + (SIDES - np.einsum("tij,tj->ti", DRAWN.estimates, iterate)) @ matrix.T
        assert data.total[row] == pytest.approx(((iterate - DRAWN.solutions) ** 2).mean(), rel=1e-12)
    np.testing.assert_allclose(data.decoder + data.floor + data.interaction, data.total, rtol=1e-12)
    assert np.ptp(data.floor) == 0
    axis = Figure().subplots()
    draw_composition(axis, data)
    assert "at step 7" in axis.get_title(loc="left")
    heights = sum(patch.get_height() for patch in axis.patches if patch.get_x() > 0.5)
    assert heights == pytest.approx(data.total[1], rel=1e-12)


def test_slopes_and_their_standard_errors():
    sizes = np.array([2.0, 4.0, 16.0])
    data = scaling_axis(sizes, np.stack([0.9 / sizes, 1.1 / sizes]), 1 / sizes)
    assert data.slope == pytest.approx(-1)
    np.testing.assert_allclose(data.standard_errors, 0.1 / sizes)
    axis = Figure().subplots()
    draw_scaling_axis(axis, data, size_name="m", error_name="error")
    assert "fitted slope -1.00" in axis.get_title(loc="left")
    with pytest.raises(ValueError, match="positive"):
        scaling_axis(sizes, np.zeros((2, 3)))


def test_a_diagnosis_tells_its_verdict_and_when_it_is_not_clear():
    data = cause_shares({"one": diagnosis([1.5, 0.3, 0.0, 0.0]), "two": diagnosis([0.0, 0.0, 0.9, 0.9])})
    np.testing.assert_allclose(data.parts[0], [0.75, 0.15, 0, 0])
    assert data.verdicts == ("prompt", "architecture, not clear")
    axis = Figure().subplots()
    draw_diagnosis(axis, data)
    assert [text.get_text() for text in axis.get_xticklabels()] == [
        "one\nfound: prompt",
        "two\nfound: architecture, not clear",
    ]
