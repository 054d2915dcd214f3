"""Deterministic equivalents of Wishart tasks, and the Hessian off the commuting subspace."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.curves import (
    commuting_hessian,
    commuting_loss,
    commuting_optimum,
    independent_saddle_ratio,
    isotropic_wishart_hessian,
    marchenko_pastur,
    saddle_ratio,
    second_variation,
    small_spread_ratio,
    wishart_best_gain,
    wishart_loss,
    wishart_resolvent,
    wishart_second_variations,
    wishart_trace_moment,
)
from jaxsolve.solver import population_gradient, population_loss, wishart_operators

NODES, WEIGHTS = (jnp.asarray(array) for array in np.polynomial.legendre.leggauss(12))
UNIFORM = WEIGHTS / 2


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_the_hessian_block_equals_differences_of_the_gradient(depth):
    random = np.random.default_rng(0)
    eigenvalues, second = jnp.asarray(random.uniform(0.2, 1.4, (7, 3))), jnp.asarray(random.uniform(0.5, 2, 3))
    gains, operators = jnp.asarray(random.uniform(0.4, 1.2, 3)), jax.vmap(jnp.diag)(eigenvalues)
    hessian = commuting_hessian(gains, eigenvalues, second, depth=depth)

    def gradient(matrix):
        return population_gradient(matrix, operators, jnp.diag(second), depth=depth)[1]

    for i, j in ((0, 1), (2, 0), (1, 1)):
        unit = jnp.zeros((3, 3)).at[i, j].set(1e-4)
        rows = [
            (gradient(jnp.diag(gains) + n * unit) - gradient(jnp.diag(gains) - n * unit)) / (2e-4 * n) for n in (1, 2)
        ]
        row = (4 * rows[0] - rows[1]) / 3
        own = hessian.own[i, j] + (hessian.coupling[i, j] if i == j else 0)
        assert abs(row[i, j] - own) <= 1e-9
        assert i == j or abs(row[j, i] - hessian.coupling[i, j]) <= 1e-9
        others = row.at[i, j].set(0).at[j, i].set(0)
        assert np.abs(others).max() <= 1e-9


@pytest.mark.parametrize(("depth", "expected"), [(2, 1.0), (3, 1.0909), (4, 1.4444), (6, 1.723), (8, 1.925)])
def test_small_spreads_have_the_ratio_of_their_moments(depth, expected):
    law = 1 + 0.01 * NODES
    found = float(independent_saddle_ratio(law, UNIFORM, depth=depth))
    moments = jnp.stack([jnp.sum(UNIFORM * NODES**k) for k in range(2 * depth - 1)])
    assert found == pytest.approx(expected, abs=2e-4)
    assert float(small_spread_ratio(moments, depth=depth)) == pytest.approx(found, rel=1e-4)


@pytest.mark.parametrize(("depth", "expected"), [(2, 1.0), (3, 0.8), (4, 1.0)])
def test_two_values_are_never_a_saddle(depth, expected):
    moments = jnp.asarray([1.0, 0.0] * depth)
    assert float(small_spread_ratio(moments, depth=depth)) == pytest.approx(expected)
    for spread in (0.01, 0.3, 0.8):
        law = jnp.array([1 - spread, 1 + spread])
        assert float(independent_saddle_ratio(law, jnp.full(2, 0.5), depth=depth)) <= expected + 1e-9


def test_independent_modes_have_the_ratio_of_their_joint_law():
    law = 1 + 0.5 * NODES
    joint = jnp.stack([mode.ravel() for mode in jnp.meshgrid(law, law)], axis=1)
    weights = (UNIFORM[:, None] * UNIFORM[None, :]).ravel()
    second = jnp.array([1.0, 3.0])
    gains = commuting_optimum(joint, depth=3, weights=weights)
    expected = saddle_ratio(commuting_hessian(gains, joint, second, depth=3, weights=weights))[0, 1]
    found = independent_saddle_ratio(law, UNIFORM, depth=3, moment_ratio=3.0)
    assert float(found) == pytest.approx(float(expected), rel=1e-12)
    even = independent_saddle_ratio(law, UNIFORM, depth=3)
    assert float(found / even) == pytest.approx(2 / 3**0.5, rel=1e-12)


@pytest.mark.parametrize(
    ("depth", "spread", "leaves"), [(2, 0.3, False), (3, 0.5, True), (3, 0.8, False), (4, 0.5, True)]
)
def test_descent_is_driven_off_a_saddle_and_back_to_a_minimum(depth, spread, leaves):
    nodes, weights = np.polynomial.legendre.leggauss(8)
    counts = np.round(np.outer(weights, weights).ravel() * 100).astype(int)
    joint = np.stack([mode.ravel() for mode in np.meshgrid(1 + spread * nodes, 1 + spread * nodes)], axis=1)
    joint = jnp.asarray(joint[np.repeat(np.arange(64), counts)])
    gains = commuting_optimum(joint, depth=depth)
    ratio = float(saddle_ratio(commuting_hessian(gains, joint, jnp.ones(2), depth=depth))[0, 1])
    assert (ratio > 1) is leaves
    turned = jnp.array([[0.0, 1e-3], [-1e-3, 0.0]])
    operators = jax.vmap(jnp.diag)(joint)
    variation = second_variation(jnp.diag(gains), turned, operators, jnp.eye(2), depth=depth).mean()
    _, slope = population_gradient(jnp.diag(gains) + turned, operators, jnp.eye(2), depth=depth)
    assert bool(variation < 0) is leaves
    assert float(jnp.sum(slope * turned)) == pytest.approx(float(variation), rel=1e-2)


def test_a_quadrature_of_the_marchenko_pastur_law():
    nodes, weights = marchenko_pastur(0.25)
    moments = [float(weights @ nodes**k) for k in range(5)]
    np.testing.assert_allclose(moments, [1, 1, 1.25, 1.8125, 2.890625], rtol=1e-12)
    with pytest.raises(ValueError, match="between 0 and 1"):
        marchenko_pastur(1.5)


def test_the_resolvent_solves_its_equation_and_expands_in_moments():
    spectrum = jnp.array([0.3, 1.0, 2.0])
    points = jnp.array([1.0 + 2.0j, -3.0 + 0.5j, 4000.0j])
    found = wishart_resolvent(points, spectrum, freedom=jnp.array(9.0))
    companion, resolvent, points, spectrum = map(np.asarray, (*found, points, spectrum))
    right = -points + np.sum(spectrum / (1 + spectrum * companion[:, None]), axis=1) / 9
    np.testing.assert_allclose(1 / companion, right, rtol=1e-12)
    mean = -(points[2] ** 2) * (resolvent[2] + 1 / points[2])
    np.testing.assert_allclose(mean, spectrum, rtol=1e-2)


@pytest.mark.parametrize("depth", [1, 4])
def test_isotropic_tasks_have_the_loss_of_their_law(depth):
    nodes, weights = marchenko_pastur(0.25)
    scalar = commuting_loss(jnp.array([0.9]), nodes[:, None], jnp.ones(1), depth=depth, weights=weights)
    four = jnp.ones(4)
    closed = partial(wishart_loss, spectrum=four, second_moments=four, depth=depth, freedom=jnp.array(16.0))
    assert float(closed(0.9 * four)) == pytest.approx(float(scalar), rel=1e-11)
    powers = nodes * (1 - 0.9 * nodes) ** (2 * depth)
    assert float(closed(0.9 * four, norm="energy")) == pytest.approx(float(weights @ powers) / 2, rel=1e-11)


def test_the_closure_is_differentiated_through_its_equation(unchecked):
    spectrum, second = jnp.array([0.2, 0.5, 1.0]), jnp.array([1.0, 2.0, 0.5])
    gains = jnp.array([1.5, 1.0, 0.6])
    closed = partial(wishart_loss, spectrum=spectrum, second_moments=second, depth=3, freedom=jnp.array(12.0))
    for norm in ("euclidean", "energy"):
        slope = jax.grad(partial(closed, norm=norm))(gains)
        for k in range(3):
            shift = 1e-5 * jnp.eye(3)[k]
            expected = (closed(gains + shift, norm=norm) - closed(gains - shift, norm=norm)) / 2e-5
            assert float(slope[k]) == pytest.approx(float(expected), rel=1e-6)
    with pytest.raises(ValueError, match="not positive"):
        closed(-gains)
    with pytest.raises(ValueError, match="euclidean"):
        closed(gains, norm="maximum")


def test_traces_of_wishart_matrices():
    size, freedom = 3, 5
    draws = wishart_operators(np.random.default_rng(1).standard_normal((60_000, size, freedom)), np.ones(size))
    eigenvalues = np.linalg.eigvalsh(draws)
    for orders in ([1], [2], [1, 1], [2, 1], [3], [2, 2], [0, 3]):
        values = np.prod([np.sum(eigenvalues**order, axis=1) for order in orders], axis=0)
        exact = float(wishart_trace_moment(orders, size=size, freedom=freedom))
        assert abs(values.mean() - exact) <= 4.5 * values.std() / len(values) ** 0.5
    assert wishart_trace_moment([4], size=1, freedom=1) == 105
    with pytest.raises(ValueError, match="at least 0"):
        wishart_trace_moment([-1], size=2, freedom=2)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 6])
def test_the_limit_has_three_routes(depth):
    ratio = 0.2
    hessian = isotropic_wishart_hessian(jnp.array(ratio), depth=depth)
    by_law = independent_saddle_ratio(*marchenko_pastur(ratio), depth=depth)
    assert float(hessian.coupling / hessian.own) == pytest.approx(float(by_law), rel=1e-10)
    variations = [wishart_second_variations(size=size, freedom=5 * size, depth=depth) for size in (200, 400)]
    for sign, name in ((1, "symmetric"), (-1, "antisymmetric")):
        limit = float(hessian.own + sign * hessian.coupling)
        errors = [abs(getattr(found, name) - limit) for found in variations]
        assert errors[1] <= 0.02 * abs(limit) + 1e-3
        assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)
    assert wishart_best_gain(size=400, freedom=2000, depth=depth) == pytest.approx(1 / 1.2, rel=2e-3)


def test_ratios_at_two_three_and_four_steps():
    c = np.array([0.05, 0.17, 0.5])
    expected = {
        2: 2 / (2 + c + c**2),
        3: 8 / (7 + 5 * c + 5 * c**2 + c**3),
        4: 34 / (22 + 10 * c + 16 * c**2 + 7 * c**3 + c**4),
    }
    for depth, values in expected.items():
        found = jax.vmap(partial(isotropic_wishart_hessian, depth=depth))(jnp.asarray(c))
        np.testing.assert_allclose(found.coupling / found.own, values, rtol=1e-12)


def test_anisotropic_wishart_tasks_have_a_saddle_on_the_diagonal():
    """Covariance from 0.1 to 1 and `n = 4 K`, four steps deep: descent below the best diagonal matrix, by draws."""
    size, depth = 8, 4
    spectrum = np.logspace(-1, 0, size)
    factors = np.random.default_rng(2).standard_normal((10_000, size, 4 * size))
    fit, held_out = (jnp.asarray(wishart_operators(part, spectrum)) for part in np.split(factors, [2_000]))
    gains = jnp.asarray(0.8 / spectrum)

    def loss(logarithms):
        return population_loss(jnp.diag(jnp.exp(logarithms)), fit, jnp.eye(size), depth=depth)

    logarithms = jnp.log(gains)
    slope, curvature = jax.jit(jax.grad(loss)), jax.jit(jax.hessian(loss))
    for _ in range(5):
        logarithms = logarithms - jnp.linalg.solve(curvature(logarithms), slope(logarithms))
    assert np.abs(slope(logarithms)).max() <= 1e-8
    gains, first, last = jnp.diag(jnp.exp(logarithms)), size - 2, size - 1
    upper, lower = jnp.zeros((2, size, size)).at[0, first, last].set(1).at[1, last, first].set(1)
    own, transposed, both = (
        second_variation(gains, direction, held_out, jnp.eye(size), depth=depth)
        for direction in (upper, lower, upper - lower)
    )
    assert own.mean() > 0
    assert transposed.mean() > 0
    balance = (transposed.mean() / own.mean()) ** 0.25
    coupling = (own + transposed - both) / 2
    values = balance**2 * own + transposed / balance**2 - 2 * coupling
    assert values.mean() < -5 * values.std() / len(values) ** 0.5
