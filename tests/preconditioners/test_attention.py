"""The attention preconditioners, entry by entry, and what sets each of them apart."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.preconditioners import (
    Flexformer,
    LinearAttention,
    OperatorTokens,
    PositiveFeatureAttention,
    SoftmaxAttention,
    position_tokens,
)

from .table import ATTENTIONS, FEATURES, HEAD_SIZE, SIZE, TASKS, evaluated, operators, residuals

SHARED = {case.name: case for case in ATTENTIONS if not case.per_task}


def matrix(model, size=SIZE):
    return np.asarray(evaluated(model, operators(size=size), residuals(size=size))[0])


def first_head(model, size=SIZE):
    """`A^(1)` alone."""
    gains = jnp.zeros_like(model.gains).at[0].set(1)
    return matrix(eqx.tree_at(lambda m: (m.gains, m.skip), model, (gains, jnp.zeros_like(model.skip))), size)


def linear(model, head, q, k):
    return q @ k.T / np.sqrt(q.shape[1])


def softmax(model, head, q, k):
    weights = np.exp(q @ k.T / np.sqrt(q.shape[1]))
    return weights / weights.sum(axis=1, keepdims=True)


def flexformer(model, head, q, k):
    """Through the kernel: `(1/D) Σ_f a_f²` times cosines of differences of phases, a mean over all pairs of spectra."""
    squares = np.exp(2 * np.asarray(model.log_amplitudes)[head])
    kernel = np.zeros((len(q), len(k)))
    for one in np.asarray(model.frequencies)[:, head]:
        for other in np.asarray(model.frequencies)[:, head]:
            phases = (q @ one.T)[:, None, :] - (k @ other.T)[None, :, :]
            kernel += (squares * np.cos(phases)).mean(axis=2) / len(model.frequencies) ** 2
    return kernel


def positive(model, head, q, k):
    frequencies = np.asarray(model.frequencies)[head]

    def features(x):
        exponents = x @ frequencies.T - np.sum(x**2, axis=1)[:, None] / 2
        return np.exp(exponents - exponents.max()) / np.sqrt(len(frequencies))

    weights = features(q) @ features(k).T
    return weights / (weights.sum(axis=1, keepdims=True) + 1e-6)


ENTRIES = {
    "linear": linear,
    "softmax": softmax,
    "flexformer-stationary": flexformer,
    "flexformer": flexformer,
    "positive": positive,
}


def by_definition(name, model, tokens):
    """`ρ I + Σ_h γ_h A^(h)(X)` in NumPy."""
    total = float(model.skip) * np.eye(len(tokens))
    for head, gain in enumerate(np.asarray(model.gains)):
        q, k = (np.asarray(tokens) @ np.asarray(w)[head] for w in (model.query_weights, model.key_weights))
        total += gain * ENTRIES[name](model, head, q, k)
    return total


def tokens_of(tokens, operator):
    if not isinstance(tokens, OperatorTokens):
        return np.asarray(tokens)
    coordinates, sketch = np.asarray(tokens.coordinates), np.asarray(tokens.sketch)
    return np.array([[*coordinates[j], *(operator[j] @ sketch), operator[j, j]] for j in range(len(operator))])


@pytest.mark.parametrize("case", ATTENTIONS, ids=lambda case: case.name)
def test_the_matrix_is_the_one_of_the_definition(case):
    model = case()
    found = np.broadcast_to(matrix(model), operators().shape)
    for dense, operator in zip(found, np.asarray(operators()), strict=True):
        expected = by_definition(case.name.removesuffix("-per-task"), model, tokens_of(model.tokens, operator))
        assert np.linalg.norm(dense - expected) <= 1e-13 * np.linalg.norm(expected)


@pytest.mark.parametrize("name", SHARED)
def test_without_gains_only_the_skip_is_left(name):
    model = SHARED[name]()
    model = eqx.tree_at(lambda m: m.gains, model, jnp.zeros_like(model.gains))
    assert np.array_equal(matrix(model), float(model.skip) * np.eye(SIZE))


@pytest.mark.parametrize(("name", "rank"), [("linear", HEAD_SIZE), ("positive", FEATURES)])
def test_a_head_has_the_rank_of_its_features(name, rank):
    values = np.linalg.svd(first_head(SHARED[name]()), compute_uv=False)
    assert values[rank] <= 1e-14 * values[0] < values[rank - 1]


def test_heads_are_those_of_the_matrix():
    model = SHARED["flexformer"]()
    np.testing.assert_allclose(model.attention(model.tokens)[0], first_head(model), rtol=0, atol=1e-14)


def with_frequencies(model, frequencies):
    return eqx.tree_at(lambda m: m.frequencies, model, frequencies)


def test_equal_spectra_make_the_non_stationary_kernel_stationary():
    stationary = SHARED["flexformer-stationary"]()
    doubled = with_frequencies(stationary, jnp.concatenate([stationary.frequencies] * 2))
    unequal = with_frequencies(doubled, doubled.frequencies.at[1].multiply(1.1))
    expected = matrix(stationary)
    assert np.linalg.norm(matrix(doubled) - expected) <= 1e-14 * np.linalg.norm(expected)
    assert np.linalg.norm(matrix(unequal) - expected) > 1e-3 * np.linalg.norm(expected)


LINE = 12


def kernel_on_a_line(spectra, features=4):
    """One head with positions `j / LINE` as tokens, projected by the identity, at frequencies of the periodic grid."""
    random = np.random.default_rng(0)
    frequencies = 2 * np.pi * random.integers(-5, 6, (spectra, 1, features, 1)).astype(float)
    one, amplitudes = np.ones((1, 1, 1)), 0.5 * random.standard_normal((1, features))
    return Flexformer(np.arange(LINE)[:, None] / LINE, one, one, np.ones(1), np.asarray(0.3), frequencies, amplitudes)


def departure(found, expected):
    return np.abs(found - expected).max() / np.abs(found).max()


def test_a_stationary_kernel_on_a_periodic_grid_is_circulant():
    circulant, other = (matrix(kernel_on_a_line(spectra), LINE) for spectra in (1, 2))
    assert departure(circulant, np.roll(circulant, (1, 1), axis=(0, 1))) <= 1e-14
    assert departure(other, np.roll(other, (1, 1), axis=(0, 1))) > 1e-2


def test_a_stationary_kernel_on_a_uniform_grid_is_toeplitz_at_any_frequency():
    model = kernel_on_a_line(1)
    toeplitz = matrix(with_frequencies(model, 0.77 * model.frequencies), LINE)
    assert departure(toeplitz[1:, 1:], toeplitz[:-1, :-1]) <= 1e-14
    assert departure(toeplitz, np.roll(toeplitz, (1, 1), axis=(0, 1))) > 1e-2


@pytest.mark.parametrize("spectra", [1, 2])
def test_a_kernel_is_positive_semidefinite_where_queries_are_keys(spectra):
    model = kernel_on_a_line(spectra)
    kernel = first_head(model, LINE)
    assert departure(kernel, kernel.T) <= 1e-14
    eigenvalues = np.linalg.eigvalsh(kernel)
    assert eigenvalues[0] >= -1e-14 * eigenvalues[-1]
    assert np.all(np.abs(eigenvalues[: LINE - 8]) <= 1e-14 * eigenvalues[-1])
    mirrored = first_head(eqx.tree_at(lambda m: m.key_weights, model, -model.key_weights), LINE)
    assert np.linalg.eigvalsh(mirrored + mirrored.T)[0] < -1e-2


def test_positive_features_estimate_the_exponential_kernel():
    """With many standard normal frequencies, the normalised rows are a softmax of `q · k`, up to `1/√D`."""
    random, errors = np.random.default_rng(0), []
    weights = 0.3 * random.standard_normal((2, 4, 8, 2))
    for features in (100, 10_000):
        frequencies = random.standard_normal((4, features, 2))
        model = PositiveFeatureAttention(position_tokens(SIZE), *weights, np.ones(4), np.asarray(1.0), frequencies)
        q, k = (np.asarray(model.tokens) @ w for w in weights)
        exact = np.stack([softmax(model, head, 2**0.5 * q[head], k[head]) for head in range(4)])
        errors.append(np.linalg.norm(jax.jit(type(model).attention)(model, model.tokens) - exact))
    assert errors[1] < 0.03 * np.linalg.norm(exact)
    assert 10 / 3 < errors[0] / errors[1] < 30


@pytest.mark.parametrize("name", ["softmax", "positive"])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_large_tokens_overflow_nowhere(name, dtype):
    model = SHARED[name](dtype=dtype)
    model = eqx.tree_at(
        lambda m: (m.tokens, m.gains, m.skip), model, (1e3 * model.tokens, jnp.ones(2, dtype), 0 * model.skip)
    )
    systems, vectors = operators(dtype=dtype), residuals(dtype=dtype)
    rows = np.asarray(evaluated(model, systems, vectors)[0]).sum(axis=1)
    assert np.all((rows >= 0) & (rows <= 2 + 1e-6))
    if dtype == jnp.float32:
        gradients = jax.jit(jax.grad(lambda m: jnp.sum(m.apply(systems, vectors) ** 2)))(model)
        assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))


@pytest.mark.parametrize("model", [LinearAttention, SoftmaxAttention, Flexformer, PositiveFeatureAttention])
def test_initial_parameters(model):
    tokens = position_tokens(SIZE, 11, dtype=jnp.float32)
    found = model.initialise(tokens, heads=5, head_size=20, gain=0.5, skip=0.8, key=jax.random.key(1))
    assert found.dtype == jnp.float32
    assert found.gains.tolist() == pytest.approx([0.1] * 5)
    assert float(found.skip) == pytest.approx(0.8)
    normal = [weights * 24**0.5 for weights in (found.query_weights, found.key_weights)]
    assert {weights.shape for weights in normal} == {(5, 24, 20)}
    if hasattr(found, "frequencies"):
        assert found.frequencies.shape[-3:] == (5, 16, 20)
        normal.append(found.frequencies)
    for entries in map(np.asarray, normal):
        assert abs(entries.mean()) < 5 / entries.size**0.5
        assert abs((entries**2).mean() - 1) < 5 * (2 / entries.size) ** 0.5
    assert np.abs(np.corrcoef(*(np.asarray(weights).ravel() for weights in normal[:2]))[0, 1]) < 0.1
    if model is Flexformer:
        assert found.frequencies.shape[0] == 2
        assert not found.log_amplitudes.any()


def test_operator_tokens_take_rows_of_operators_that_need_not_be_symmetric():
    tokens = OperatorTokens.initialise(position_tokens(SIZE, dtype=jnp.float32), sketch_size=2, key=jax.random.key(0))
    assert tokens.sketch.dtype == tokens.dtype == jnp.float32
    systems = jnp.triu(operators(dtype=jnp.float32))
    found = np.asarray(tokens(systems))
    assert found.shape == (TASKS, *tokens.shape) == (TASKS, SIZE, 11)
    expected = np.stack([tokens_of(tokens, operator) for operator in np.asarray(systems)])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_position_tokens():
    found = np.asarray(position_tokens(5, 2, dtype=jnp.float32))
    x = np.arange(5) / 4
    columns = [np.ones(5), x, np.cos(np.pi * x), np.cos(2 * np.pi * x), np.sin(np.pi * x), np.sin(2 * np.pi * x)]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.stack(columns, axis=1), rtol=0, atol=1e-6)
    assert position_tokens(1, 0).tolist() == [[1.0, 0.0]]


def initialised(model, **options):
    return lambda: model.initialise(**{"tokens": position_tokens(SIZE), "heads": 2, "head_size": 3} | options, key=KEY)


def changed(name, **fields):
    model = SHARED[name]()
    return lambda: type(model)(**vars(model) | fields)


KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (initialised(LinearAttention, heads=0), "at least one head.*heads=0"),
        (initialised(SoftmaxAttention, head_size=0), "head_size=0"),
        (initialised(LinearAttention, tokens=np.ones(8)), r"one row per unknown; got \(8,\)"),
        (initialised(Flexformer, kernel="rbf"), "'stationary', 'non-stationary'; got 'rbf'"),
        (initialised(Flexformer, features=0), r"at least one feature.*got \(2, 2, 0, 3\)"),
        (initialised(PositiveFeatureAttention, features=0), r"got \(2, 0, 3\)"),
        (changed("linear", query_weights=np.ones((2, 5, 3))), r"d = 8 features.*got \(2, 5, 3\)"),
        (changed("softmax", key_weights=np.ones((2, 8, 4))), r"shape of query_weights.*got \(2, 8, 4\)"),
        (changed("positive", gains=np.ones(3)), r"2 heads take gains of shape \(2,\).*\(3,\)"),
        (changed("linear", skip=np.ones(6)), r"a scalar skip.*\(6,\)"),
        (changed("linear", tokens=np.ones((0, 8))), r"not empty; LinearAttention got \(0, 8\)"),
        (changed("flexformer", frequencies=np.ones((3, 2, 5, 3))), r"one spectrum.*got \(3, 2, 5, 3\)"),
        (changed("flexformer", query_weights=np.ones(3)), r"here of shape \(3,\)"),
        (changed("flexformer", log_amplitudes=np.ones((2, 4))), r"one log amplitude, \(2, 5\); got \(2, 4\)"),
        (lambda: position_tokens(0), "size of at least 1.*size=0"),
        (lambda: position_tokens(3, -1), "frequencies=-1"),
        (lambda: OperatorTokens(np.ones((6, 8)), np.ones((5, 4))), r"\(6, 8\) and \(5, 4\)"),
        (lambda: OperatorTokens.initialise(np.ones((6, 8)), sketch_size=0, key=KEY), "sketch_size=0"),
    ],
)
def test_bad_input_is_refused(unchecked, build, message):
    with pytest.raises(ValueError, match=message):
        build()
