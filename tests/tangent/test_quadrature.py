"""Traces of functions of kernels against the dense spectrum: exact at full depth, within standard errors below it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
import numpy as np
import pytest
import scipy.stats

from jaxsolve.feedback import Backprop, ConvolutionalNetwork, FeedbackAlignment
from jaxsolve.tangent import SpectralQuadrature, kernel, lanczos_quadrature, operator

from .test_kernel import problem

KEY = jax.random.key(7)
RIDGE = 0.1
FUNCTIONS = {
    "trace": (lambda found: found.trace(lambda nodes: nodes), lambda values: values),
    "square": (lambda found: found.trace(jnp.square), lambda values: values**2),
    "log-determinant": (lambda found: found.log_determinant(RIDGE), lambda values: np.log(values + RIDGE)),
    "effective dimension": (lambda found: found.effective_dimension(RIDGE), lambda values: values / (values + RIDGE)),
}


def symmetric(matrix):
    return lineax.MatrixLinearOperator(jnp.asarray(matrix), lineax.symmetric_tag)


def spread(size, *, seed=0, dtype=np.float64):
    """A matrix with eigenvalues from 0.1 to 10, and these."""
    generator = np.random.default_rng(seed)
    vectors = np.linalg.qr(generator.standard_normal((size, size)))[0]
    values = np.geomspace(0.1, 10, size)
    return ((vectors * values) @ vectors.T).astype(dtype), values


@pytest.fixture(scope="module")
def network_case():
    network, inputs = problem((5, 30, 30, 3), examples=40, activation="tanh")
    return operator(network, inputs), np.linalg.eigvalsh(kernel(network, inputs))


@pytest.fixture(scope="module")
def network_quadrature(network_case):
    return lanczos_quadrature(network_case[0], probes=48, depth=40, key=KEY)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_estimates_of_a_kernel_lie_within_their_standard_errors(name, network_case, network_quadrature):
    measure, function = FUNCTIONS[name]
    estimate, terms = measure(network_quadrature), function(network_case[1])
    assert abs(float((estimate.value - terms.sum()) / estimate.standard_error)) < 4
    assert float(estimate.standard_error) < 0.1 * np.abs(terms).sum()


def test_deviations_in_standard_errors_are_those_of_student():
    """Over 512 independent estimates of eight probes; half the standard error is found out."""
    matrix, values = spread(24)
    found = lanczos_quadrature(symmetric(matrix), probes=512 * 8, depth=24, key=KEY)

    def deviation(nodes, weights):
        estimate = SpectralQuadrature(nodes, weights, 24).log_determinant()
        return (estimate.value - np.log(values).sum()) / estimate.standard_error

    deviations = jax.vmap(deviation)(found.nodes.reshape(512, 8, 24), found.weights.reshape(512, 8, 24))
    assert scipy.stats.kstest(deviations, scipy.stats.t(7).cdf).pvalue > 1e-3
    assert scipy.stats.kstest(2 * deviations, scipy.stats.t(7).cdf).pvalue < 1e-6


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float64", 1e-12)])
def test_at_full_depth_the_quadrature_of_a_probe_is_exact(dtype, tolerance):
    """`v^T f(A) v` for the probe itself, and the nodes are the eigenvalues."""
    matrix, values = spread(12, dtype=dtype)
    found = lanczos_quadrature(symmetric(matrix), probes=3, depth=12, key=KEY)
    assert found.nodes.dtype == found.weights.dtype == jnp.dtype(dtype)
    np.testing.assert_allclose(found.nodes, np.broadcast_to(values, (3, 12)), rtol=0, atol=10 * tolerance)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, rtol=tolerance)
    keys = jax.vmap(lambda index: jax.random.fold_in(KEY, index))(jnp.arange(3))
    signs = np.asarray(jax.vmap(lambda key: jax.random.rademacher(key, (12,), dtype))(keys))
    eigenvalues, vectors = np.linalg.eigh(matrix)
    expected = ((signs @ vectors) ** 2 * np.log(eigenvalues)[None]).sum(axis=1)
    measured = 12 * np.sum(found.weights * np.log(found.nodes), axis=1)
    np.testing.assert_allclose(measured, expected, rtol=0, atol=20 * tolerance)
    assert found.log_determinant().value.dtype == jnp.dtype(dtype)


def test_polynomials_need_half_their_degree():
    """Degree five is exact from depth three on; depth two is not enough."""
    matrix, _ = spread(12)
    values = [
        float(lanczos_quadrature(symmetric(matrix), probes=2, depth=depth, key=KEY).trace(lambda x: x**5).value)
        for depth in (2, 3, 12)
    ]
    np.testing.assert_allclose(values[1], values[2], rtol=1e-11)
    assert abs(values[0] / values[2] - 1) > 1e-3


def test_a_density_has_integral_one_and_the_mass_of_the_spectrum():
    matrix, values = spread(40)
    found = lanczos_quadrature(symmetric(matrix), probes=64, depth=40, key=KEY)
    grid = jnp.linspace(-3.0, 13.0, 1601)
    estimate = found.density(grid, width=0.3)
    step = float(grid[1] - grid[0])
    np.testing.assert_allclose(estimate.value.sum() * step, 1, rtol=1e-12)
    exact = scipy.stats.norm(values[None, :], 0.3).pdf(np.asarray(grid)[:, None]).mean(axis=1)
    points = np.arange(300, 1300, 100)
    deviations = (estimate.value - exact)[points] / estimate.standard_error[points]
    assert np.abs(deviations).max() < 4
    assert estimate.standard_error.max() < 0.2 * exact.max()


@pytest.mark.parametrize("size", [1, 2, 6])
def test_krylov_spaces_that_end_early(size):
    """Multiples of the identity end at once, a matrix of rank one after two steps; both are exact for every probe."""
    flat = lanczos_quadrature(symmetric(3 * np.eye(size)), probes=2, depth=size, key=KEY)
    np.testing.assert_allclose(flat.log_determinant().value, size * np.log(3), rtol=1e-14)
    np.testing.assert_allclose(flat.log_determinant().standard_error, 0, atol=1e-13)
    ones = lanczos_quadrature(symmetric(np.ones((size, size))), probes=2, depth=size, key=KEY)
    expected = jax.vmap(
        lambda index: jnp.sum(jax.random.rademacher(jax.random.fold_in(KEY, index), (size,), "float64"))
    )(jnp.arange(2))
    np.testing.assert_allclose(ones.trace(lambda nodes: nodes).value, (expected**2).mean(), rtol=1e-12)
    zero = lanczos_quadrature(symmetric(np.zeros((size, size))), probes=2, depth=size, key=KEY)
    assert float(zero.trace(jnp.cos).value) == pytest.approx(size)


def test_repeated_eigenvalues_of_several_outputs():
    """One layer: every eigenvalue of the kernel is there once per output, and a dozen steps see all of them."""
    network, inputs = problem((5, 3), examples=20)
    matrix = kernel(network, inputs)
    found = lanczos_quadrature(operator(network, inputs), probes=64, depth=12, key=KEY)
    estimate, expected = found.log_determinant(RIDGE), np.linalg.slogdet(matrix + RIDGE * np.eye(60))[1]
    assert abs(float((estimate.value - expected) / estimate.standard_error)) < 4
    deeper = lanczos_quadrature(operator(network, inputs), probes=64, depth=24, key=KEY).log_determinant(RIDGE)
    np.testing.assert_allclose(deeper.value, estimate.value, rtol=1e-10)


def test_probes_do_not_depend_on_their_number_or_the_block():
    matrix, _ = spread(10)
    few = lanczos_quadrature(symmetric(matrix), probes=3, depth=4, key=KEY)
    many = lanczos_quadrature(symmetric(matrix), probes=7, depth=4, block=2, key=KEY)
    np.testing.assert_allclose(few.nodes, many.nodes[:3], rtol=1e-12)
    np.testing.assert_allclose(few.weights, many.weights[:3], rtol=1e-12, atol=1e-14)


def test_it_works_under_jit_and_in_reverse_mode():
    """The gradient by the matrix, against `(A + ridge)^{−1}` between the probes."""
    matrix, _ = spread(8)

    @jax.jit
    def value(matrix):
        found = lanczos_quadrature(symmetric((matrix + matrix.T) / 2), probes=4, depth=8, key=KEY)
        return found.log_determinant(RIDGE).value

    slope = jax.grad(value)(jnp.asarray(matrix))
    keys = jax.vmap(lambda index: jax.random.fold_in(KEY, index))(jnp.arange(4))
    signs = jax.vmap(lambda key: jax.random.rademacher(key, (8,), "float64"))(keys)

    def dense(matrix):
        values, vectors = jnp.linalg.eigh((matrix + matrix.T) / 2 + RIDGE * jnp.eye(8))
        return jnp.mean(jnp.sum((signs @ vectors) ** 2 * jnp.log(values)[None], axis=1))

    np.testing.assert_allclose(slope, jax.grad(dense)(jnp.asarray(matrix)), rtol=0, atol=1e-10)


def test_no_product_is_taken_at_less_than_the_precision_of_the_dtype():
    matrix = spread(8, dtype=np.float32)[0]

    def nodes(matrix):
        return lanczos_quadrature(symmetric(matrix), probes=2, depth=4, throw=False, key=KEY).nodes

    program = str(jax.make_jaxpr(nodes)(matrix))
    assert program.count("dot_general[") == program.count("Precision.HIGHEST, Precision.HIGHEST") > 2


def test_convolutions_and_the_symmetric_part_of_another_rule():
    network = ConvolutionalNetwork.initialise((1, 6, 6), channels=(4,), outputs=2, key=jax.random.key(4))
    inputs = jnp.asarray(np.random.default_rng(6).standard_normal((6, 1, 6, 6)))
    rule = FeedbackAlignment([20 * matrix for matrix in FeedbackAlignment.sample(network, key=KEY).feedback])
    whole = kernel(network, inputs, rule)
    one = operator(network, inputs, rule)
    part = lineax.TaggedLinearOperator((one + one.T) / 2, lineax.symmetric_tag)
    found = lanczos_quadrature(part, probes=8, depth=12, key=KEY)
    values = np.linalg.eigvalsh((whole + whole.T) / 2)
    assert values[0] < 0
    np.testing.assert_allclose(found.nodes, np.broadcast_to(values, found.nodes.shape), atol=1e-10 * values[-1])
    with pytest.raises(ValueError, match=r"not defined.*ridge.*8 of 8 probes"):
        found.log_determinant()
    assert np.isnan(float(found.log_determinant(throw=False).value))


def test_operators_that_are_not_symmetric_are_refused(unchecked):
    network, inputs = problem((5, 8, 7, 3))
    rule = FeedbackAlignment.sample(network, key=KEY)
    with pytest.raises(ValueError, match=r"rule other than backpropagation is not symmetric.*symmetric part"):
        lanczos_quadrature(operator(network, inputs, rule), probes=2, depth=3, key=KEY)
    false = lineax.TaggedLinearOperator(operator(network, inputs, rule), lineax.symmetric_tag)
    with pytest.raises(ValueError, match=r"tagged symmetric and is not.*2 of 2 probes"):
        lanczos_quadrature(false, probes=2, depth=3, key=KEY)
    found = lanczos_quadrature(false, probes=2, depth=3, throw=False, key=KEY)
    assert np.isnan(found.nodes).all()
    honest = lineax.TaggedLinearOperator(operator(network, inputs, Backprop()), lineax.symmetric_tag)
    assert np.isfinite(lanczos_quadrature(honest, probes=2, depth=3, key=KEY).nodes).all()


def test_other_misuse_is_refused(unchecked):
    matrix = symmetric(spread(5)[0])
    found = lanczos_quadrature(matrix, probes=2, depth=3, key=KEY)
    for message, function in {
        "from 1 to the size of the operator, 5; got 6": lambda: lanczos_quadrature(matrix, probes=2, depth=6, key=KEY),
        "from 1 to the size of the operator, 5; got 0": lambda: lanczos_quadrature(matrix, probes=2, depth=0, key=KEY),
        "depth counts steps": lambda: lanczos_quadrature(matrix, probes=2, depth=2.0, key=KEY),
        "at least 2 probes; got 1": lambda: lanczos_quadrature(matrix, probes=1, depth=2, key=KEY),
        "one vector of floating-point numbers": lambda: lanczos_quadrature(
            lineax.MatrixLinearOperator(jnp.ones((2, 3))), probes=2, depth=2, key=KEY
        ),
        "NaN or infinite": lambda: lanczos_quadrature(symmetric(np.full((3, 3), np.nan)), probes=2, depth=2, key=KEY),
        r"nodes of shape \(2, 3\).*got shape \(2,\)": lambda: found.trace(lambda nodes: nodes[:, 0]),
        "above 0; got 0": lambda: found.density(jnp.zeros(2), width=0.0),
        "float32": lambda: found.density(jnp.zeros(2, jnp.float32), width=1.0),
    }.items():
        with pytest.raises(ValueError, match=message):
            function()


def test_nothing_of_the_size_of_the_kernel_is_kept(network_quadrature):
    assert max(leaf.size for leaf in jax.tree.leaves(eqx.filter(network_quadrature, eqx.is_array))) == 48 * 40
