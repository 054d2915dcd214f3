"""Parametric diffusion against another code, manufactured solutions, derivatives and the certificate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.datasets import airfoil_mesh
from jaxsolve.pde import (
    ParametricDiffusion,
    TriangleMesh,
    cosine_modes,
    ellipticity_certificate,
    interval_grid,
    quadrant_modes,
    require_elliptic,
    square_grid,
    triangle_grid,
)

LINE, SQUARE = interval_grid(31), square_grid(7)
INTERVAL = ParametricDiffusion(LINE, cosine_modes(LINE))
QUADRANTS = ParametricDiffusion(SQUARE, quadrant_modes(SQUARE))
LOG_AFFINE = ParametricDiffusion(SQUARE, cosine_modes(SQUARE), link="log-affine")
PARAMETERS = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (3, 4)))


def relative(measured, reference):
    reference = np.asarray(reference)
    return np.linalg.norm(np.asarray(measured) - reference) / np.linalg.norm(reference)


@pytest.mark.parametrize("family", [INTERVAL, QUADRANTS])
def test_affine_families_are_a_mean_and_four_modes(family):
    expected = family.mean_operator[None] + jnp.einsum("tk,kij->tij", PARAMETERS, family.mode_operators)
    assert relative(family.operators(PARAMETERS), expected) <= 1e-14
    assert np.array_equal(family.operators(PARAMETERS), family.operators(PARAMETERS).swapaxes(1, 2))


def test_quadrants_add_up_to_half_the_mean():
    total = QUADRANTS.mode_operators.sum(axis=0)
    assert float(jnp.abs(total - 0.5 * QUADRANTS.mean_operator).max()) <= 1e-15


def test_the_derivative_by_a_parameter_is_the_operator_of_its_mode():
    derivative = jax.jacfwd(INTERVAL.operator)(PARAMETERS[0])
    assert relative(jnp.moveaxis(derivative, 2, 0), INTERVAL.mode_operators) <= 1e-14
    step = 1e-6 * jnp.asarray([0.0, 1.0, 0.0, 0.0])
    quotient = (LOG_AFFINE.operator(PARAMETERS[0] + step) - LOG_AFFINE.operator(PARAMETERS[0] - step)) / 2e-6
    assert relative(jax.jacrev(LOG_AFFINE.operator)(PARAMETERS[0])[:, :, 1], quotient) <= 1e-8


def test_bilinear_elements_equal_scikit_fem_with_a_varying_coefficient():
    skfem = pytest.importorskip("skfem")
    helpers = pytest.importorskip("skfem.helpers")
    mesh = skfem.MeshQuad.init_tensor(np.linspace(0, 1, 9), np.linspace(0, 1, 9))
    gauss = (np.array([-1.0, 1.0]) / 3**0.5 + 1) / 2
    points = np.stack(np.meshgrid(gauss, gauss), axis=0).reshape(2, -1)
    basis = skfem.Basis(mesh, skfem.ElementQuad1(), quadrature=(points, np.full(4, 0.25)))

    def coefficient(x, y):
        return np.exp(0.2 * np.cos(np.pi * x) - 0.1 * np.cos(2 * np.pi * x) * np.cos(np.pi * y))

    form = skfem.BilinearForm(lambda u, v, w: coefficient(*w.x) * helpers.dot(helpers.grad(u), helpers.grad(v)))
    load = skfem.LinearForm(lambda v, w: coefficient(*w.x) * v)
    inside = basis.complement_dofs(basis.get_dofs())
    order = inside[np.lexsort(np.round(mesh.p[:, inside][::-1], 9))]
    np.testing.assert_allclose(mesh.p[:, order].T, SQUARE.nodes, atol=1e-12)
    reference = form.assemble(basis).toarray()[np.ix_(order, order)]
    parameters = jnp.array([1.0, 0.0, 0.0, -0.5])
    assert relative(LOG_AFFINE.operator(parameters), reference) <= 1e-13
    force = LOG_AFFINE.coefficient(parameters)
    assert relative(SQUARE.load(force), load.assemble(basis)[order]) <= 1e-13


def test_the_line_and_the_airfoil_carry_loads_of_the_right_size():
    """A constant force on an interval: `u = x(1 − x)/2` at the nodes, exactly."""
    x = np.asarray(LINE.nodes[:, 0])
    found = jnp.linalg.solve(INTERVAL.mean_operator, LINE.load(jnp.ones(32)))
    assert relative(found, x * (1 - x) / 2) <= 1e-12
    mesh = TriangleMesh(*airfoil_mesh())
    airfoil = triangle_grid(mesh)
    touching = np.isin(mesh.triangles, mesh.interior_nodes).sum(axis=1) / 3
    assert float(airfoil.load(jnp.ones(582)).sum()) == pytest.approx(float(touching @ mesh.areas), rel=1e-12)


def test_the_errors_of_a_manufactured_solution_are_of_second_order():
    errors = []
    for unknowns in (15, 31, 63):
        grid = interval_grid(unknowns)
        x = grid.points[:, 0]
        slope, sine, cosine = 0.3, jnp.sin(jnp.pi * x), jnp.cos(jnp.pi * x)
        family = ParametricDiffusion(grid, 0.3 * cosine[None])
        force = jnp.pi**2 * ((1 + slope * cosine) * sine + slope * sine * cosine)
        found = jnp.linalg.solve(family.operator(jnp.ones(1)), grid.load(force))
        errors.append(float(jnp.abs(found - jnp.sin(jnp.pi * grid.nodes[:, 0])).max()))
    assert np.polyfit(np.log([1 / 16, 1 / 32, 1 / 64]), np.log(errors), 1)[0] == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize(("family", "limit"), [(INTERVAL, 0.8), (QUADRANTS, 0.5), (LOG_AFFINE, np.tanh(0.8))])
def test_the_certificate_bounds_the_spectrum_of_every_task(family, limit):
    found = ellipticity_certificate(family)
    assert float(found.contraction) <= limit + 1e-12
    corners = jnp.asarray(np.sign(np.random.default_rng(1).standard_normal((16, 4))))
    for operator in family.operators(jnp.concatenate([PARAMETERS, corners, -jnp.ones((1, 4))])):
        shares = np.linalg.eigvals(np.linalg.solve(np.asarray(family.mean_operator), np.asarray(operator))).real
        assert shares.min() >= float(found.lower) * (1 - 1e-9)
        assert shares.max() <= float(found.upper) * (1 + 1e-9)
        assert np.abs(1 - float(found.step) * shares).max() <= float(found.contraction) * (1 + 1e-9)


def test_the_certificate_of_quadrants_is_reached():
    shares = np.linalg.eigvals(np.linalg.solve(QUADRANTS.mean_operator, QUADRANTS.operator(-jnp.ones(4)))).real
    assert np.abs(1 - shares).max() == pytest.approx(0.5, rel=1e-12)


def test_lost_ellipticity_is_refused_with_the_least_coefficient():
    with pytest.raises(ValueError, match=r"Failed: 1 of 2 tasks, at index 1\. Least coefficient: -0\.99"):
        INTERVAL.operators(jnp.array([[0.0] * 4, [10.0, 0, 0, 0]]))
    indefinite = INTERVAL.operators(jnp.array([[10.0, 0, 0, 0]]), throw=False)
    assert float(jnp.linalg.eigvalsh(indefinite[0])[0]) < 0
    with pytest.raises(ValueError, match=r"Least coefficient: -0\.5 in task 0"):
        ellipticity_certificate(QUADRANTS, radius=3.0)
    assert float(ellipticity_certificate(QUADRANTS, radius=3.0, throw=False).contraction) == 1.5
    with pytest.raises(ValueError, match="NaN or infinite"):
        require_elliptic(jnp.array([[jnp.nan, 1.0]]))
    assert float(ellipticity_certificate(LOG_AFFINE, radius=10.0).contraction) < 1


def test_single_precision_is_the_rounded_operator():
    grid = interval_grid(31, dtype=jnp.float32)
    family = ParametricDiffusion(grid, cosine_modes(grid))
    found = family.operators(PARAMETERS.astype(jnp.float32))
    assert found.dtype == jnp.float32
    assert relative(found, INTERVAL.operators(PARAMETERS)) <= 1e-6


def test_bad_input_is_refused(unchecked):
    with pytest.raises(ValueError, match=r"shape \(parameters, 32\)"):
        ParametricDiffusion(LINE, jnp.ones((1, 31)))
    with pytest.raises(ValueError, match="positive and finite at every point"):
        ParametricDiffusion(LINE, jnp.ones((1, 32)), jnp.zeros(32))
    with pytest.raises(ValueError, match="got 'linear'"):
        ParametricDiffusion(LINE, jnp.ones((1, 32)), link="linear")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"4 parameters; got shape \(3,\)"):
        INTERVAL.operator(jnp.ones(3))
    with pytest.raises(ValueError, match="tangent_operators"):
        _ = LOG_AFFINE.mode_operators
    with pytest.raises(ValueError, match="at least one unknown"):
        interval_grid(0)
    with pytest.raises(ValueError, match="each of the 32 points"):
        LINE.load(jnp.ones(31))
    with pytest.raises(ValueError, match="plane domain"):
        quadrant_modes(LINE)
    with pytest.raises(ValueError, match="wave vectors"):
        cosine_modes(LINE, [(1, 2)])
    with pytest.raises(ValueError, match="radius"):
        ellipticity_certificate(INTERVAL, radius=0.0)
