"""Figures of a learned solver: their arrays against matrices made by hand, and what they say of themselves."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from jaxsolve.plotting import to_png
from jaxsolve.plotting._gallery import GALLERY
from jaxsolve.plotting._gallery_setup import wishart_systems
from jaxsolve.plotting._solver import (
    draw_attention_modes,
    draw_gain_spectrum,
    draw_identity_errors,
    draw_phase_portrait,
    draw_risk_overlay,
    save_gain_animation,
)
from jaxsolve.plotting._solver_data import (
    GainSpectrum,
    RiskOverlay,
    attention_modes,
    gain_spectrum,
    order_parameter_path,
    phase_path,
    risk_overlay,
)

EIGENVALUES = np.array([2.0, 1.0, 0.25])
ROTATION = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
MEAN = ROTATION @ np.diag(EIGENVALUES) @ ROTATION.T
SHIFT = np.random.default_rng(1).standard_normal((3, 3))
OPERATORS = np.stack([MEAN + 0.1 * (SHIFT + SHIFT.T), MEAN - 0.1 * (SHIFT + SHIFT.T)])


def test_the_inverse_of_the_mean_has_gains_on_the_line():
    data = gain_spectrum(np.stack([np.eye(3), 0.5 * np.linalg.inv(MEAN)]), OPERATORS, np.array([0, 10]))
    np.testing.assert_allclose(data.inverse_eigenvalues, 1 / EIGENVALUES)
    np.testing.assert_allclose(data.gains, [np.ones(3), 0.5 / EIGENVALUES])
    np.testing.assert_allclose(data.contraction, [1.0, 0.5])


def test_the_contraction_counts_what_the_gains_do_not_show():
    coupled = ROTATION @ (np.diag(1 / EIGENVALUES) + np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])) @ ROTATION.T
    data = gain_spectrum(coupled[None], OPERATORS, np.array([0]))
    np.testing.assert_allclose(data.gains[0], data.inverse_eigenvalues)
    assert data.contraction[0] == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("mean", [np.array([[1.0, 0.5], [0.0, 1.0]]), np.diag([1.0, -1.0])])
def test_modes_need_a_symmetric_positive_definite_mean(mean):
    with pytest.raises(ValueError, match="mean operator"):
        gain_spectrum(np.eye(2)[None], mean[None], np.array([0]))


def test_off_diagonal_mass_is_that_of_the_modes():
    matrices = np.stack([MEAN, ROTATION @ np.array([[1.0, 3, 0], [0, 1, 0], [0, 0, 1]]) @ ROTATION.T])
    data = attention_modes(matrices, OPERATORS)
    np.testing.assert_allclose(data.off_diagonal, [0, 0.5], atol=1e-12)
    np.testing.assert_allclose(data.modes[0], np.diag(EIGENVALUES), atol=1e-12)


def test_paths_zigzag_or_go_straight():
    operator = np.diag([1.0, 0.08])
    plain = phase_path(1.85 * np.eye(2), operator, np.ones(2), depth=6)
    straight = phase_path(0.6 * np.linalg.inv(operator), operator, np.ones(2), depth=6)
    np.testing.assert_allclose(plain.errors[:, 0], (1 - 1.85) ** np.arange(7))
    np.testing.assert_allclose(straight.errors, 0.4 ** np.arange(7)[:, None] * np.ones(2))
    assert straight.detour == pytest.approx(1)
    assert plain.detour > 5


def test_bounds_lie_above_the_risk_and_start_at_it():
    systems = wishart_systems(16, seed=0)
    data = risk_overlay(np.eye(16), *systems, depth=4)
    errors = np.asarray(systems.solutions)
    np.testing.assert_allclose(data.risk[0], (errors**2).mean())
    iteration = np.eye(16) - np.asarray(systems.operators)
    powers = np.einsum("tij,tjk,tk->ti", iteration, iteration, errors)
    np.testing.assert_allclose(data.risk[2], (powers**2).mean())
    assert data.norm_bound[0] == pytest.approx(data.risk[0])
    for bound in (data.norm_bound, data.power_bound, data.energy_bound):
        assert (bound >= data.risk * (1 - 1e-12)).all()
    assert (data.power_bound <= data.norm_bound * (1 + 1e-12)).all()


def test_order_parameters_of_the_inverse_are_one():
    path = order_parameter_path(np.stack([np.linalg.inv(MEAN), np.eye(3)]), MEAN[None], np.eye(3), np.array([0, 1]))
    np.testing.assert_allclose(path.values[0], 1)
    np.testing.assert_allclose(path.values[1], [EIGENVALUES.mean(), *[(EIGENVALUES**2).mean()] * 2])


def test_a_violated_bound_is_counted_in_the_title():
    axes = Figure().subplots(1, 2)
    draw_risk_overlay(*axes, RiskOverlay(*(np.array(row) for row in ([1.0, 2.0], [1.0, 1.5], [1.0, 2.0], [3.0, 3.0]))))
    assert "1 of 6 bounds violated" in axes[0].get_title(loc="left")


def test_gains_that_are_not_positive_are_counted():
    axis = Figure().subplots()
    draw_gain_spectrum(axis, GainSpectrum(np.array([7]), np.array([1.0, 2.0]), np.array([[1.0, -1.0]]), np.ones(1)))
    assert "1 gains not positive" in axis.get_title(loc="left")


def test_heat_maps_have_symmetric_limits():
    axis = Figure().subplots()
    image = draw_attention_modes(axis, attention_modes(np.diag([3.0, -1.0, 0])[None], np.eye(3)[None]), 0, name="head")
    assert image.get_clim() == (-3, 3)


def test_a_difference_of_zero_is_left_out():
    axis = Figure().subplots()
    draw_identity_errors(axis, {"identity": (np.arange(2), np.array([0.0, 1e-15]))}, epsilon=2e-16)
    assert np.isnan(axis.get_lines()[0].get_ydata()[0])
    assert "1.0e-15" in axis.get_title(loc="left")


def test_paths_are_told_apart_by_marker_too():
    axis = Figure().subplots()
    path = phase_path(np.eye(2), np.diag([0.5, 0.5]), np.ones(2), depth=3)
    draw_phase_portrait(axis, {"one": path, "two": path})
    assert len({line.get_marker() for line in axis.get_lines()}) == 3


def test_an_animation_has_a_frame_per_saved_step(tmp_path):
    saved = np.stack([(1 + step) * np.eye(3) for step in range(3)])
    save_gain_animation(tmp_path / "gains.gif", gain_spectrum(saved, OPERATORS, np.arange(3)))
    with Image.open(tmp_path / "gains.gif") as image:
        assert (image.format, image.n_frames) == ("GIF", 3)


@pytest.mark.parametrize("name", GALLERY)
def test_every_figure_of_the_gallery_explains_itself(name):
    figure = GALLERY[name]()
    assert figure.get_suptitle()
    assert to_png(figure).startswith(b"\x89PNG")
    for axis in figure.axes:
        if axis.get_label() == "<colorbar>":
            continue
        assert axis.get_xlabel()
        assert axis.get_ylabel()
        assert any(digit.isdigit() for digit in axis.get_title(loc="left"))
        assert axis.get_legend() or axis.get_images()


def test_the_gallery_is_in_order_and_has_no_name_of_a_claim():
    assert list(GALLERY) == sorted(GALLERY)
    assert not any("/" in name for name in GALLERY)
