"""Figures of feedback alignment: their arrays, and what they say of themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxsolve.feedback import MLP, erosion_form
from jaxsolve.plotting import (
    ErosionHistogram,
    ErosionShares,
    draw_erosion_histogram,
    draw_erosion_shares,
    erosion_histogram,
)


def test_the_histogram_has_the_moments_of_the_form_and_refuses_what_is_not_normal():
    generator = np.random.default_rng(0)
    inputs, targets = (jnp.asarray(generator.standard_normal((8, size))) for size in (5, 2))
    network = MLP.initialise((5, 6, 2), key=jax.random.key(0))
    data = erosion_histogram(network, inputs, targets, count=200, key=jax.random.key(1))
    form = erosion_form(network, inputs, network(inputs) - targets)
    assert data.mean == pytest.approx(float(form.hidden_share))
    assert data.deviation**2 == pytest.approx(float(form.direct_variance([1 / 6])))
    assert abs(data.draws.mean() - data.mean) < 5 * data.deviation / np.sqrt(200)
    deep = MLP.initialise((5, 6, 6, 2), key=jax.random.key(0))
    with pytest.raises(ValueError, match="two_layer_erosion"):
        erosion_histogram(deep, inputs, targets, count=2, key=jax.random.key(1))


def test_the_titles_tell_the_test_and_the_largest_deviation():
    axes = Figure().subplots(1, 2)
    draw_erosion_histogram(axes[0], ErosionHistogram(np.linspace(0, 1, 50), 0.5, 0.3, 0.125, 0.5))
    shares = np.array([[0.5], [0.25]])
    draw_erosion_shares(axes[1], ErosionShares(np.array([8, 16]), shares, shares + 0.03, np.full((2, 1), 0.01)))
    titles = [axis.get_title(loc="left") + axis.get_title() for axis in axes]
    assert "0.1250" in titles[0]
    assert "3.00 standard errors, of 2" in titles[1]
