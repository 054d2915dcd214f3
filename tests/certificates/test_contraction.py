"""Certificates of a frozen decoder against the iteration itself, and against certificates that are false."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve._results import RESULTS
from jaxsolve.certificates import (
    contraction_certificate,
    count_violations,
    energy_certificate,
    energy_norm,
    require_contraction,
)
from jaxsolve.solver import trajectory

TASKS, SIZE, DEPTH = 32, 6, 12


def draw(*, size=SIZE, shared=False, definite=False, symmetric=False, seed=0, dtype=float):
    """Preconditioner, operators, first errors: far from normal, and some of the tasks diverge."""
    random = np.random.default_rng(seed)
    noise = random.standard_normal((2, TASKS, size, size)) / np.sqrt(size)
    operators = np.eye(size) + 0.5 * noise[0]
    if definite:
        operators = 0.05 * np.eye(size) + operators @ operators.transpose(0, 2, 1)
    preconditioner = 0.5 * np.eye(size) + random.uniform(0.05, 0.6, (TASKS, 1, 1)) * noise[1]
    if symmetric:
        preconditioner = (preconditioner + preconditioner.transpose(0, 2, 1)) / 2
    errors = random.standard_normal((TASKS, size))
    arrays = (preconditioner[0] if shared else preconditioner, operators, errors)
    return tuple(jnp.asarray(array, dtype) for array in arrays)


def measured(preconditioner, operators, errors, depth=DEPTH):
    """Errors of the iteration that is run with right-hand sides."""
    solutions = jnp.cos(jnp.arange(errors.size, dtype=errors.dtype).reshape(errors.shape))
    right_hand_sides = jnp.einsum("tij,tj->ti", operators, solutions)
    iterates = trajectory(preconditioner, operators, right_hand_sides, solutions + errors, depth=depth)
    return iterates - solutions[None]


def norms(errors):
    return jnp.linalg.norm(errors, axis=2)


def iteration_matrices(preconditioner, operators):
    return np.eye(operators.shape[1]) - np.asarray(preconditioner) @ np.asarray(operators)


def test_a_jordan_block_by_hand():
    a, c, depths = 0.5, 4.0, np.arange(DEPTH + 1)
    operators, errors = jnp.array([[[1.0, -8.0], [0.0, 1.0]]]), jnp.array([[3.0, 4.0]])
    certificate = contraction_certificate(a * jnp.eye(2), operators, errors, depth=DEPTH)
    corner = depths * c * a ** (depths - 1.0)
    power = (corner + np.sqrt(corner**2 + 4 * a ** (2.0 * depths))) / 2
    assert float(certificate.spectral_radius[0]) == pytest.approx(a, rel=1e-14)
    assert float(certificate.spectral_norm[0]) == pytest.approx(power[1], rel=1e-14)
    np.testing.assert_allclose(certificate.norm_bounds[:, 0], 5 * power[1] ** depths, rtol=1e-13)
    np.testing.assert_allclose(certificate.power_bounds[:, 0], 5 * power, rtol=1e-13)
    # The counterfeit: the spectral radius is no norm.
    errors = norms(measured(a * jnp.eye(2), operators, errors))
    assert int(count_violations(errors, certificate.power_bounds)) == 0
    assert int(count_violations(errors, 5 * a ** jnp.arange(DEPTH + 1.0)[:, None])) == DEPTH


@pytest.mark.parametrize(
    ("size", "shared", "dtype"),
    [(1, False, float), *((SIZE, shared, dtype) for shared in (True, False) for dtype in (jnp.float32, float))],
)
def test_euclidean_bounds_hold_for_any_matrices(size, shared, dtype):
    for seed in range(12):
        system = draw(size=size, shared=shared, seed=seed, dtype=dtype)
        certificate = contraction_certificate(*system, depth=DEPTH)
        errors = norms(measured(*system))
        assert certificate.power_bounds.dtype == dtype
        assert int(count_violations(errors, certificate.norm_bounds)) == 0
        assert int(count_violations(errors, certificate.power_bounds)) == 0
        assert int(count_violations(certificate.power_bounds, certificate.norm_bounds)) == 0
    if size > 1 and not shared:
        assert 0 < int(((certificate.spectral_norm > 1) & certificate.contracts).sum()) < TASKS
        radius_bounds = certificate.spectral_radius[None] ** jnp.arange(DEPTH + 1.0, dtype=dtype)[:, None] * errors[:1]
        assert int(count_violations(errors, radius_bounds)) > 20


def test_rates_are_those_of_the_matrices():
    system = draw()
    certificate = contraction_certificate(*system, depth=DEPTH)
    matrices = iteration_matrices(*system[:2])
    radius = np.abs(np.linalg.eigvals(matrices)).max(axis=1)
    np.testing.assert_allclose(certificate.spectral_radius, radius, rtol=1e-10)
    np.testing.assert_allclose(certificate.spectral_norm, [np.linalg.norm(m, 2) for m in matrices], rtol=1e-12)
    assert np.array_equal(certificate.contracts, radius < 1)
    assert 0 < certificate.contracts.sum() < TASKS


def test_the_power_bound_is_attained_and_a_hundredth_less_is_violated():
    preconditioner, operators, _ = draw(seed=3)
    powers = np.linalg.matrix_power(iteration_matrices(preconditioner, operators), DEPTH)
    errors = jnp.asarray(np.linalg.svd(powers)[2][:, 0])
    bounds = contraction_certificate(preconditioner, operators, errors, depth=DEPTH).power_bounds
    reached = norms(measured(preconditioner, operators, errors))
    np.testing.assert_allclose(reached[-1], bounds[-1], rtol=1e-10)
    assert int(count_violations(reached, bounds)) == 0
    assert int(count_violations(reached[-1:], 0.99 * bounds[-1:])) == TASKS


def test_injected_violations_are_counted_one_by_one():
    system = draw()
    bounds = contraction_certificate(*system, depth=DEPTH).power_bounds
    errors = np.array(norms(measured(*system)))
    errors[3, 5] = bounds[3, 5] * (1 + 1e-9)
    errors[4, 6] = bounds[4, 6] * (1 + 1e-11)
    assert int(count_violations(errors, bounds)) == 1
    errors[DEPTH, 0] = np.nan
    errors[DEPTH, 1] = np.inf
    assert int(count_violations(errors, bounds)) == 3


def test_the_wrong_order_of_factors_is_found():
    operators = jnp.diag(jnp.array([1.0, 0.01]))[None]
    preconditioner, errors = jnp.array([[1.0, 50.0], [0.0, 10.0]]), jnp.ones((1, 2))
    certificate = contraction_certificate(preconditioner, operators, errors, depth=DEPTH)
    assert int(count_violations(norms(measured(preconditioner, operators, errors)), certificate.power_bounds)) == 0
    wrong = norms(measured(operators[0], preconditioner[None], errors))
    assert int(count_violations(wrong, certificate.power_bounds)) >= 1
    assert int(count_violations(wrong, certificate.norm_bounds)) >= 1


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("symmetric", [True, False])
def test_energy_bounds_hold_for_positive_definite_operators(symmetric, shared, dtype):
    system = draw(shared=shared, definite=True, symmetric=symmetric, dtype=dtype)
    certificate = energy_certificate(*system, depth=DEPTH)
    energies = energy_norm(system[1], measured(*system))
    assert certificate.bounds.dtype == dtype
    assert int(count_violations(energies, certificate.bounds)) == 0
    assert int(count_violations(energies[1:], 0.1 * certificate.bounds[1:])) > 0


def test_energy_contraction_is_that_of_the_symmetric_square_root():
    for symmetric in (True, False):
        preconditioner, operators, errors = draw(definite=True, symmetric=symmetric, seed=1)
        found = energy_certificate(preconditioner, operators, errors, depth=DEPTH).energy_contraction
        radius = np.abs(np.linalg.eigvals(iteration_matrices(preconditioner, operators))).max(axis=1)
        for i in range(TASKS):
            values, vectors = np.linalg.eigh(np.asarray(operators[i]))
            root = vectors * np.sqrt(values) @ vectors.T
            matrix = np.eye(6) - root @ np.asarray(preconditioner[i]) @ root
            assert float(found[i]) == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-11)
        if symmetric:
            np.testing.assert_allclose(found, radius, rtol=1e-11)
        else:
            assert (np.asarray(found) > (1 - 1e-12) * radius).all()
            assert int(count_violations(found[None], jnp.asarray(radius)[None], absolute=0.1)) > 10


def test_the_energy_bound_is_attained_and_one_step_more_is_violated():
    preconditioner, operators, _ = draw(definite=True, symmetric=True, seed=2)
    values, vectors = np.linalg.eig(iteration_matrices(preconditioner, operators))
    extreme = np.abs(values).argmax(axis=1)
    errors = jnp.asarray(np.real([vectors[i, :, extreme[i]] for i in range(TASKS)]))
    certificate = energy_certificate(preconditioner, operators, errors, depth=DEPTH)
    energies = energy_norm(operators, measured(preconditioner, operators, errors))
    np.testing.assert_allclose(energies[-1], certificate.bounds[-1], rtol=1e-9)
    contracting = np.flatnonzero(certificate.contracts)
    assert contracting.size > 2
    assert int(count_violations(energies[:-1, contracting], certificate.bounds[1:, contracting])) > 10


def test_bounds_hold_for_an_iteration_that_diverges_and_no_contraction_can_be_claimed():
    operators = jnp.ones((5, 1, 1)).at[2].set(2.5)
    for function in (contraction_certificate, energy_certificate):
        certificate = function(jnp.eye(1), operators, jnp.ones((5, 1)), depth=3)
        assert certificate.contracts.tolist() == [True, True, False, True, True]
        with pytest.raises(ValueError, match=r"1 of 5 tasks, at index 2\. Largest rate: 1\.5 at index 2"):
            require_contraction(certificate)
        fine = function(jnp.eye(1), jnp.ones((5, 1, 1)), jnp.ones((5, 1)), depth=3)
        assert require_contraction(fine) is fine
    errors = norms(measured(jnp.eye(1), operators, jnp.ones((5, 1)), depth=3))
    bounds = contraction_certificate(jnp.eye(1), operators, jnp.ones((5, 1)), depth=3).norm_bounds
    assert errors[3, 2] > 3
    assert int(count_violations(errors, bounds)) == 0


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_rounding_does_not_make_a_singular_operator_contract(dtype):
    random = np.random.default_rng(0)
    path = 2 * np.eye(SIZE) - np.eye(SIZE, k=1) - np.eye(SIZE, k=-1)
    path[0, 0] = path[-1, -1] = 1
    factors = random.standard_normal((TASKS, SIZE, SIZE)) / np.sqrt(SIZE)
    preconditioners = 0.2 * np.eye(SIZE) + 0.05 * factors @ factors.transpose(0, 2, 1)
    arrays = (preconditioners, np.broadcast_to(path, factors.shape), np.ones((TASKS, SIZE)))
    system = tuple(jnp.asarray(array, dtype) for array in arrays)
    certificate = contraction_certificate(*system, depth=DEPTH)
    assert not certificate.contracts.any()
    assert (np.asarray(certificate.spectral_radius) < 1).any()
    with pytest.raises(ValueError, match="32 of 32"):
        energy_certificate(*system, depth=DEPTH)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], "not symmetric"),
        ([[1.0, 0.5], [0.5 + 1e-12, 1.0]], "not symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "eigenvalue that is not positive"),
        ([[1.0, 1.0], [1.0, 1.0]], "eigenvalue that is not positive"),
        ([[0.0, 0.0], [0.0, 0.0]], "eigenvalue that is not positive"),
        ([[1.0, np.nan], [np.nan, 1.0]], "NaN or infinite"),
    ],
)
def test_operators_without_an_energy_norm_are_refused_by_index(matrix, message):
    operators = jnp.stack([jnp.eye(2), jnp.array(matrix), jnp.eye(2)])
    with pytest.raises(ValueError, match=rf"{message}.* 1 of 3 tasks, at index 1"):
        energy_certificate(jnp.stack([0.5 * jnp.eye(2)] * 3), operators, jnp.ones((3, 2)), depth=2)


def test_rounding_does_not_make_an_operator_unsymmetric():
    operators = jnp.stack([jnp.array([[1.0, 0.5], [np.nextafter(0.5, 1), 1.0]])] * 3)
    certificate = energy_certificate(jnp.stack([0.5 * jnp.eye(2)] * 3), operators, jnp.ones((3, 2)), depth=2)
    np.testing.assert_allclose(certificate.energy_contraction, 0.75, rtol=1e-14)


@pytest.mark.parametrize("function", [contraction_certificate, energy_certificate])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_tasks_that_are_not_finite_are_refused_by_index(function, value, position):
    system = [jnp.stack([jnp.eye(2)] * 3), jnp.stack([jnp.eye(2)] * 3), jnp.ones((3, 2))]
    system[position] = system[position].at[(1, 0, 0)[: system[position].ndim]].set(value)
    if value == 1e300:
        system = [array.at[1].multiply(1e10) for array in system]
    with pytest.raises(ValueError, match=r"NaN or infinite.* 1 of 3 tasks, at index 1"):
        function(*system, depth=2)
    told = function(*system, depth=2, throw=False)
    assert (told.result == RESULTS.not_finite).tolist() == [False, True, False]
    bounds = told.norm_bounds if function is contraction_certificate else told.bounds
    assert np.isnan(bounds).all(axis=0).tolist() == [False, True, False]
    assert int(count_violations(jnp.zeros_like(bounds), bounds)) == 3
    with pytest.raises(ValueError, match="Largest rate: inf at index 1"):
        require_contraction(told)


def test_a_bound_that_overflows_is_infinite_and_that_of_no_error_is_zero():
    operators, errors = jnp.stack([jnp.eye(2)] * 3), jnp.ones((3, 2)).at[0].set(0)
    certificate = contraction_certificate(-1e200 * operators, operators, errors, depth=2)
    for bounds in (certificate.norm_bounds, certificate.power_bounds):
        assert bounds[:, 0].tolist() == [0, 0, 0]
        assert np.isinf(bounds[:, 1]).tolist() == [False, False, True]


@pytest.mark.parametrize("function", [contraction_certificate, energy_certificate])
def test_transformations(function):
    preconditioner, operators, errors = draw(definite=True, symmetric=True)
    several = jnp.stack([preconditioner, 0.5 * preconditioner])
    compiled = eqx.filter_jit(jax.vmap(lambda one: function(one, operators, errors, depth=DEPTH)))
    mapped = compiled(several)
    for i in range(2):
        single = function(several[i], operators, errors, depth=DEPTH)
        for one, many in zip(jax.tree.leaves(single), jax.tree.leaves(mapped), strict=True):
            np.testing.assert_allclose(many[i], one, rtol=1e-12)
    with pytest.raises(RuntimeError, match="NaN or infinite"):
        compiled(several.at[1, 2].set(jnp.nan))
    lengths = {
        len(str(jax.make_jaxpr(lambda one, d=d: function(one, operators, errors, depth=d).result)(preconditioner)))
        for d in (10, 98)
    }
    assert len(lengths) == 1


def test_claiming_a_contraction_under_jit_fails_at_run_time():
    claim = eqx.filter_jit(
        lambda matrix: (
            require_contraction(contraction_certificate(matrix, jnp.eye(2)[None], jnp.ones((1, 2)), depth=1)).rate
        )
    )
    assert claim(0.5 * jnp.eye(2)).tolist() == [0.5]
    with pytest.raises(RuntimeError, match="no contraction can be claimed"):
        claim(2.5 * jnp.eye(2))


def test_misfits_are_refused(unchecked):
    preconditioner, operators, errors = draw()
    for function in (contraction_certificate, energy_certificate):
        with pytest.raises(ValueError, match=r"shape \(6, 6\), shared, or \(32, 6, 6\)"):
            function(preconditioner[:2], operators, errors, depth=1)
        with pytest.raises(ValueError, match=r"initial_errors has shape \(32, 6\)"):
            function(preconditioner, operators, errors[0], depth=1)
        with pytest.raises(ValueError, match="task axis in front"):
            function(preconditioner, operators[0], errors, depth=1)
        with pytest.raises(ValueError, match="one floating dtype"):
            function(preconditioner, operators, errors.astype(jnp.float32), depth=1)
        for depth in (-1, 2.0, True):
            with pytest.raises(ValueError, match="integer of at least 0"):
                function(preconditioner, operators, errors, depth=depth)
    with pytest.raises(ValueError, match=r"errors end in \(tasks, size\)"):
        energy_norm(operators, errors[:2])
