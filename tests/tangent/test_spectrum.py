"""Spectra of kernels against LAPACK, duplicates, and the drift of kernels."""

import jax
import jax.numpy as jnp
import lineax
import numpy as np
import pytest

from jaxsolve.feedback import MLP, Backprop, Tanh
from jaxsolve.tangent import extreme_eigenvalues, kernel, kernel_drift, kernel_spectrum, operator


def network_kernel(copies=False, outputs=2):
    generator = np.random.default_rng(0)
    shapes = ((20, 4), (15, 20), (outputs, 15))
    network = MLP([generator.standard_normal(shape) / shape[1] ** 0.5 for shape in shapes], activation=Tanh())
    inputs = generator.standard_normal((6, 4))
    if copies:
        inputs[4] = inputs[1]
    return kernel(network, inputs, Backprop())


@pytest.mark.parametrize("method", ["dense", "lanczos"])
def test_the_ends_are_those_of_lapack(method):
    matrix = network_kernel()
    values = np.linalg.eigvalsh(matrix)
    found = kernel_spectrum(matrix, method=method)
    np.testing.assert_allclose([found.smallest, found.largest], values[[0, -1]], rtol=1e-9)
    np.testing.assert_allclose(found.trace, values.sum(), rtol=1e-12)
    np.testing.assert_allclose(found.condition, np.linalg.cond(matrix), rtol=1e-8)
    np.testing.assert_allclose(found.stable_rate * values[-1], 2, rtol=1e-12)
    assert found.rank == (12 if method == "dense" else None)
    assert found.duplicates == ()


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_the_ends_of_an_operator_are_those_of_its_matrix(dtype):
    network = MLP.initialise((4, 20, 15, 2), activation=Tanh(), dtype=dtype, key=jax.random.key(0))
    inputs = jax.random.normal(jax.random.key(1), (6, 4), dtype)
    values = np.linalg.eigvalsh(np.asarray(kernel(network, inputs), float))
    found = extreme_eigenvalues(operator(network, inputs))
    accuracy = 1e-9 if dtype == jnp.float64 else 1e-4
    np.testing.assert_allclose([found.smallest, found.largest], values[[0, -1]], rtol=accuracy)
    np.testing.assert_allclose(found.condition * found.stable_rate, 2 / found.smallest, rtol=1e-12)


def test_an_operator_has_both_signs():
    matrix = np.random.default_rng(3).standard_normal((40, 40))
    symmetric = lineax.MatrixLinearOperator(jnp.asarray(matrix + matrix.T), lineax.symmetric_tag)
    found = extreme_eigenvalues(symmetric)
    np.testing.assert_allclose([found.smallest, found.largest], np.linalg.eigvalsh(matrix + matrix.T)[[0, -1]])
    assert found.condition == np.inf


def test_operators_without_ends_are_refused():
    ones = jnp.ones((4, 4))
    for wrong, message in (
        (lineax.MatrixLinearOperator(ones), "symmetric part"),
        (lineax.MatrixLinearOperator(ones[:2, :2], lineax.symmetric_tag), "size of 3"),
        (lineax.MatrixLinearOperator(jnp.nan * ones, lineax.symmetric_tag), "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            extreme_eigenvalues(wrong)


def test_equal_inputs_are_named_and_cost_rank():
    found = kernel_spectrum(network_kernel(copies=True))
    assert found.duplicates == ((2, 8), (3, 9))
    assert found.rank == 10
    assert found.condition > 1e14


def test_an_indefinite_matrix_has_no_condition():
    found = kernel_spectrum(np.diag([2.0, 1.0, -1.0]))
    assert (found.smallest, found.condition, found.rank) == (-1.0, np.inf, 2)


def test_spectra_of_wrong_kernels_are_refused(unchecked):
    matrix = np.asarray(network_kernel())
    for wrong, options, message in (
        (matrix[:3], {}, r"\(size, size\)"),
        (np.where(matrix > 0, matrix, np.nan), {}, "NaN"),
        (np.triu(matrix), {}, "symmetric part"),
        (matrix, {"method": "eigh"}, "'dense' or 'lanczos'"),
        (matrix[:2, :2], {"method": "lanczos"}, "size of 3"),
    ):
        with pytest.raises(ValueError, match=message):
            kernel_spectrum(wrong, **options)


def test_drift_obeys_the_law_of_cosines():
    start, other = network_kernel(), jnp.asarray(np.random.default_rng(1).standard_normal((12, 12)))
    drift = kernel_drift(jnp.stack([start, 3 * start, start + 5 * other, -start]), start)
    law = 1 + drift.growth**2 - 2 * drift.growth * drift.alignment
    np.testing.assert_allclose(drift.relative_change**2, law, atol=1e-12)
    np.testing.assert_allclose(drift.relative_change[jnp.array([0, 1, 3])], [0, 2, 2], atol=1e-12)
    np.testing.assert_allclose(drift.alignment[jnp.array([0, 1, 3])], [1, 1, -1], rtol=1e-12)
    assert 0.5 < float(drift.alignment[2]) < 1
    other_trace = np.linalg.norm(5 * np.asarray(other)) / np.linalg.norm(start)
    np.testing.assert_allclose(drift.relative_change[2], other_trace, rtol=1e-12)


def test_drifts_that_do_not_fit_are_refused(unchecked):
    with pytest.raises(ValueError, match="of one dtype"):
        kernel_drift(jnp.ones((2, 3, 3)), jnp.ones((2, 2)))
    with pytest.raises(ValueError, match="of one dtype"):
        kernel_drift(jnp.ones((2, 3, 3)), jnp.ones((3, 3), jnp.float32))
