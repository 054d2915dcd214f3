"""The figure of a parametric equation: its arrays by NumPy, and what it says of itself."""

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from jaxsolve.pde import ParametricDiffusion, cosine_modes, interval_grid
from jaxsolve.plotting import CertifiedErrors, certified_errors, draw_certified_errors


def test_errors_are_those_of_powers_and_stay_under_the_bound():
    grid = interval_grid(7)
    family = ParametricDiffusion(grid, cosine_modes(grid))
    parameters = np.array([[1.0, 1, 1, 1], [0.5, -0.5, 0, 0.2]])
    starts = np.random.default_rng(0).standard_normal((2, 7))
    data = certified_errors(family, parameters, starts, depth=3)
    for task in range(2):
        operator = np.asarray(family.operators(jnp.asarray(parameters))[task])
        error = np.linalg.matrix_power(np.eye(7) - np.linalg.solve(family.mean_operator, operator), 3) @ starts[task]
        expected = np.sqrt((error @ operator @ error) / (starts[task] @ operator @ starts[task]))
        np.testing.assert_allclose(data.errors[3, task], expected, rtol=1e-10)
    assert (data.errors <= data.bound[:, None] * (1 + 1e-10)).all()


def test_a_violated_bound_is_counted_in_the_title():
    axis = Figure().subplots()
    draw_certified_errors(axis, CertifiedErrors(np.array([[1.0, 1.0], [0.4, 0.6]]), 0.5), name="square")
    assert axis.get_title(loc="left") == "square: 1 of 4 bounds violated"
