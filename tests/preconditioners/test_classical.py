"""Classical preconditioners: their formulas, the best step, and what they refuse when run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.datasets import airfoil_mesh
from jaxsolve.pde import TriangleMesh, diffusion_family
from jaxsolve.preconditioners import Jacobi, ScaledMeanInverse

from .table import CLASSICAL, SIZE, TASKS, evaluated, operators, residuals

each = pytest.mark.parametrize("case", CLASSICAL, ids=lambda case: case.name)

AT_RUN_TIME = (RuntimeError, ValueError)  # equinox's own, and the one in which jax.jit wraps it

fit_step = jax.jit(lambda preconditioner, systems: preconditioner.fit_step(systems))
from_family = jax.jit(ScaledMeanInverse.from_family)


def matrices(preconditioner, systems):
    return np.asarray(evaluated(preconditioner, systems, residuals(dtype=preconditioner.dtype))[0])


def radii(preconditioner, systems, steps):
    """Largest spectral radius of `I − step P̂ H` over the operators, for each step."""
    unit = matrices(preconditioner, systems) / float(preconditioner.step)
    eigenvalues = np.linalg.eigvals(unit @ np.asarray(systems))
    return np.abs(1 - steps[:, None, None] * eigenvalues[None]).max(axis=(1, 2))


def test_the_matrices_are_those_of_the_formulas_for_operators_that_need_not_be_symmetric():
    systems = jnp.triu(operators())
    scales = np.stack([np.diag(np.diag(h) ** -0.5) for h in np.asarray(systems)])
    mean = np.mean(scales @ np.asarray(systems) @ scales, axis=0)
    expected = scales @ np.linalg.inv(mean) @ scales
    found = matrices(from_family(systems), systems)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    jacobi = matrices(Jacobi.initialise(step=0.7), systems)
    np.testing.assert_allclose(jacobi, 0.7 * scales @ scales, rtol=1e-15)


@each
def test_no_other_step_has_a_smaller_largest_radius(case):
    fitted = fit_step(case(), operators())
    best, *others = radii(fitted, operators(), float(fitted.step) * np.array([1, 0.5, 0.9, 0.999, 1.001, 1.1, 1.5]))
    assert best < 1
    assert best < min(others)


@each
def test_the_fitted_step_depends_on_neither_the_step_before_nor_a_scaling_of_the_unknowns(case):
    """`H → S H S` with a diagonal `S` leaves the spectrum of `P H` as it is."""
    scales = jnp.asarray(np.exp(np.random.default_rng(0).standard_normal((TASKS, SIZE))))
    scaled = scales[:, :, None] * operators() * scales[:, None, :]
    expected = fit_step(case(seed=0), operators()).step
    assert float(fit_step(case(seed=1), scaled).step) == pytest.approx(float(expected), rel=1e-12)


def test_the_fit_reaches_the_radius_of_its_formula():
    correlated = jnp.eye(SIZE) / 2 + jnp.ones((SIZE, SIZE)) / 2
    fitted = fit_step(Jacobi.initialise(step=5.0), jnp.stack([jnp.eye(SIZE), correlated, 3 * correlated]))
    assert float(fitted.step) == pytest.approx(2 / (0.5 + 4), rel=1e-14)
    assert radii(fitted, correlated[None].repeat(TASKS, axis=0), np.array([float(fitted.step)])) == pytest.approx(7 / 9)


def test_one_operator_is_inverted():
    system = jnp.concatenate([operators(1)] * TASKS)
    exact = fit_step(from_family(system), system)
    assert float(exact.step) == pytest.approx(1, abs=1e-13)
    np.testing.assert_allclose(matrices(exact, system) @ system, [np.eye(SIZE)] * TASKS, rtol=0, atol=1e-12)


def test_single_precision():
    rounded, exact = (fit_step(from_family(systems), systems) for systems in (operators(dtype="float32"), operators()))
    assert rounded.step.dtype == rounded.inverse.dtype == jnp.float32
    assert float(rounded.step) == pytest.approx(float(exact.step), rel=1e-5)


def test_the_scaled_mean_inverse_conditions_new_diffusion_problems_better_than_jacobi():
    family = diffusion_family(TriangleMesh(*airfoil_mesh()), sigma=2.0)
    training, held_out = jnp.split(family.operators(16, key=jax.random.key(0)), [12])
    conditions = []
    for preconditioner in (Jacobi.initialise(), ScaledMeanInverse.from_family(training)):
        factors = np.linalg.cholesky(np.asarray(preconditioner.matrix(held_out)))
        spectra = np.linalg.eigvalsh(factors.swapaxes(1, 2) @ np.asarray(held_out) @ factors)
        conditions.append(spectra[:, -1] / spectra[:, 0])
    assert np.median(conditions[1]) < 0.75 * np.median(conditions[0])


def altered(*entry_and_value):
    """The operators with entry `(1, i, j)`, and its mirror image, changed."""
    i, j, value = entry_and_value
    return operators().at[1, i, j].set(value).at[1, j, i].set(value)


@each
@pytest.mark.parametrize("entry", [0.0, -1.0, jnp.nan, jnp.inf])
def test_a_diagonal_that_cannot_scale_is_an_error_when_run(case, entry):
    systems = altered(2, 2, entry)
    for run in (evaluated, lambda preconditioner, systems, _: fit_step(preconditioner, systems)):
        with pytest.raises(AT_RUN_TIME, match="positive, finite diagonal"):
            jax.block_until_ready(run(case(), systems, residuals()))


@each
def test_apply_finds_the_error_without_the_matrix(case):
    with pytest.raises(RuntimeError, match="positive, finite diagonal"):
        case().apply(altered(2, 2, 0.0), residuals())


@pytest.mark.parametrize(
    ("systems", "message"),
    [(altered(2, 2, -1.0), "positive, finite diagonal"), (jnp.ones((TASKS, SIZE, SIZE)), "singular")],
)
def test_a_family_that_cannot_be_inverted_is_an_error_when_run(systems, message):
    with pytest.raises(AT_RUN_TIME, match=message):
        jax.block_until_ready(from_family(systems))


@each
@pytest.mark.parametrize(
    "systems",
    [operators().at[0, 0, 1].add(0.1), altered(0, 1, 9.0), altered(0, 1, jnp.nan)],
    ids=["asymmetric", "indefinite", "not finite"],
)
def test_no_step_is_fitted_where_the_rule_does_not_hold(case, systems):
    with pytest.raises(AT_RUN_TIME, match="symmetric and positive definite"):
        jax.block_until_ready(fit_step(case(), systems))


def test_asymmetric_preconditioners_get_no_step():
    inverse = jnp.eye(SIZE).at[0, 1].set(0.1)
    with pytest.raises(AT_RUN_TIME, match="symmetric and positive definite"):
        jax.block_until_ready(fit_step(ScaledMeanInverse(inverse, np.asarray(1.0)), operators()))


def test_bad_shapes_are_refused(unchecked):
    with pytest.raises(ValueError, match=r"step is one number; got shape \(3,\)"):
        Jacobi(jnp.ones(3))
    with pytest.raises(ValueError, match=r"square matrix; got shape \(2, 3\)"):
        ScaledMeanInverse(jnp.ones((2, 3)), 1.0)
    for wrong in (jnp.ones((3, 3)), jnp.ones((2, 3, 4)), jnp.ones((0, 3, 3))):
        with pytest.raises(ValueError, match=r"at least one task; got"):
            ScaledMeanInverse.from_family(wrong)
