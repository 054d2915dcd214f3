"""Random coefficients and the operators made of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.datasets import airfoil_mesh
from jaxsolve.pde import DiffusionFamily, LogNormalCoefficients, TriangleMesh, diffusion_family, stiffness_assembler

MESH = TriangleMesh(*airfoil_mesh())
DRAWS = 2000
KEYS = jax.random.split(jax.random.key(0), DRAWS)


def logarithms(coefficients):
    return np.log(np.asarray(jax.jit(jax.vmap(lambda key: coefficients(key=key)))(KEYS)))


@pytest.mark.parametrize("correlation_length", [None, 1.0])
def test_the_logarithm_has_mean_zero_and_variance_sigma_squared_in_every_cell(correlation_length):
    values = logarithms(LogNormalCoefficients(MESH.centroids, sigma=1.5, correlation_length=correlation_length)) / 1.5
    # 582 cells: 4.5 standard errors leave a chance of 4e-3 per moment at a fixed seed.
    assert np.abs(values.mean(axis=0)).max() <= 4.5 / np.sqrt(DRAWS)
    assert np.abs((values**2).mean(axis=0) - 1).max() <= 4.5 * np.sqrt(2 / DRAWS)


def test_cells_are_independent_without_a_correlation_length():
    values = logarithms(LogNormalCoefficients(MESH.centroids, sigma=1.0))
    off_diagonal = values.T @ values / DRAWS - np.diag((values**2).mean(axis=0))
    assert (off_diagonal**2).sum() / (582 * 581) == pytest.approx(1 / DRAWS, rel=0.05)


def test_covariance_is_squared_exponential():
    length, jitter = 0.8, 1e-10
    coefficients = LogNormalCoefficients(MESH.centroids, sigma=1.0, correlation_length=length)
    x, y = MESH.centroids.T
    distance = (x[:, None] - x[None, :]) ** 2 + (y[:, None] - y[None, :]) ** 2
    expected = np.exp(-0.5 * distance / length**2) / (1 + jitter)
    np.fill_diagonal(expected, 1.0)
    factor = np.asarray(coefficients.factor)
    assert np.abs(factor @ factor.T - expected).max() <= 1e-13
    values = logarithms(coefficients)
    assert np.abs(values.T @ values / DRAWS - expected).max() <= 5.5 * np.sqrt(2 / DRAWS)


def test_sigma_scales_the_logarithm_of_the_same_draw():
    key = jax.random.key(3)
    one, two = (LogNormalCoefficients(MESH.centroids, sigma=sigma)(key=key) for sigma in (1.0, 2.0))
    assert np.allclose(two, one**2, rtol=1e-13)


def test_without_spread_the_operator_is_the_laplacian():
    family = diffusion_family(MESH, sigma=0.0)
    laplacian = stiffness_assembler(MESH).assemble(jnp.ones(582))
    assert np.array_equal(family(key=jax.random.key(0)), laplacian)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("correlation_length", [None, 1.0])
def test_operators_are_positive_definite_and_differ(dtype, correlation_length):
    family = diffusion_family(MESH, sigma=1.0, correlation_length=correlation_length, dtype=dtype)
    operators = family.operators(3, key=jax.random.key(1))
    assert operators.shape == (3, 260, 260)
    assert operators.dtype == dtype
    assert np.linalg.eigvalsh(np.asarray(operators)).min() > 0
    assert np.linalg.norm(operators[0] - operators[1]) > 0.1 * np.linalg.norm(operators[0])


def test_the_first_operators_do_not_depend_on_how_many_are_drawn():
    family = diffusion_family(MESH, sigma=1.0)
    few, many = (family.operators(tasks, key=jax.random.key(2)) for tasks in (2, 5))
    assert np.allclose(few, many[:2], rtol=1e-14)


def test_bad_input_is_refused(unchecked):
    with pytest.raises(ValueError, match="at least 0; got -1"):
        LogNormalCoefficients(MESH.centroids, sigma=-1.0)
    for length in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="positive and finite"):
            LogNormalCoefficients(MESH.centroids, sigma=1.0, correlation_length=length)
    with pytest.raises(ValueError, match="Raise the jitter"):
        LogNormalCoefficients(MESH.centroids, sigma=1.0, correlation_length=5.0, jitter=0.0)
    with pytest.raises(ValueError, match=r"\(cells, dimension\); got \(582,\)"):
        LogNormalCoefficients(MESH.areas, sigma=1.0)
    with pytest.raises(ValueError, match="got 582 and 5 cells"):
        DiffusionFamily(stiffness_assembler(MESH), LogNormalCoefficients(np.zeros((5, 2)), sigma=1.0))
    with pytest.raises(ValueError, match="at least 1"):
        diffusion_family(MESH, sigma=1.0).operators(0, key=jax.random.key(0))
