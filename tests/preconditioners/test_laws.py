"""What every preconditioner promises, over the table of all of them."""

import inspect
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsolve.preconditioners
from jaxsolve.preconditioners import AbstractAttention, AbstractPreconditioner, Jacobi

from .table import CASES, FREE, SIZE, TASKS, evaluated, operators, residuals

each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def product(matrices, vectors):
    return np.einsum("...ij,tj->ti" if matrices.ndim == 2 else "tij,tj->ti", matrices, vectors)


def relative(measured, reference):
    return np.linalg.norm(np.asarray(measured) - np.asarray(reference)) / np.linalg.norm(reference)


def test_the_table_has_every_public_preconditioner():
    public = {
        value
        for value in vars(jaxsolve.preconditioners).values()
        if inspect.isclass(value) and issubclass(value, AbstractPreconditioner) and not inspect.isabstract(value)
    }
    assert {type(case()) for case in CASES} == public


@each
@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float64, 1e-13), (jnp.float32, 1e-6)])
def test_apply_is_the_product_with_the_matrix(case, dtype, tolerance):
    preconditioner = case(dtype=dtype)
    systems, vectors = operators(dtype=dtype), residuals(dtype=dtype)
    dense, applied = evaluated(preconditioner, systems, vectors)
    assert dense.shape == ((TASKS, SIZE, SIZE) if case.per_task else (SIZE, SIZE))
    assert dense.dtype == applied.dtype == preconditioner.dtype == dtype
    assert preconditioner.size in (SIZE, None)
    assert relative(applied, product(np.asarray(dense, float), vectors)) <= tolerance


@each
def test_single_precision_differs_by_its_rounding(case):
    dense, rounded = (
        evaluated(*(make(dtype=dtype) for make in (case, operators, residuals)))[0]
        for dtype in (jnp.float64, jnp.float32)
    )
    assert 0 < relative(rounded, dense) <= 20 * np.finfo(np.float32).eps


@each
def test_gradients_are_those_of_the_matrix(case):
    preconditioner, systems, vectors = case(), operators(), residuals()
    parameters, data = eqx.partition(preconditioner, preconditioner.trainable())
    cotangents = residuals(seed=1)

    @jax.jit
    @jax.grad
    def gradient(parameters, weights):
        dense, applied = evaluated(eqx.combine(parameters, data), systems, vectors)
        dense = jnp.broadcast_to(dense, systems.shape)
        pairings = jnp.sum(cotangents * applied), jnp.einsum("ti,tij,tj->", cotangents, dense, vectors)
        return weights[0] * pairings[0] + weights[1] * pairings[1]

    found, expected = gradient(parameters, jnp.array([1.0, 0.0])), gradient(parameters, jnp.array([0.0, 1.0]))
    largest = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(expected))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert jnp.abs(other).max() > 1e-6 * largest
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * largest)


@each
def test_the_tasks_do_not_see_each_other(case):
    preconditioner, systems, vectors = case(), operators(), residuals()
    dense, applied = evaluated(preconditioner, systems, vectors)
    for i in range(TASKS):
        only = [jnp.stack([array[i]] * TASKS) for array in (systems, vectors)]
        single, alone = evaluated(preconditioner, *only)
        assert relative(alone, np.stack([applied[i]] * TASKS)) <= 1e-14
        assert relative(single, np.stack([dense[i]] * TASKS) if case.per_task else dense) <= 1e-14


@each
def test_maps_over_parameters(case):
    several = [case(seed=seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *several)
    systems, vectors = operators(), residuals()
    _, together = jax.vmap(evaluated, (0, None, None))(stacked, systems, vectors)
    separate = np.stack([evaluated(preconditioner, systems, vectors)[1] for preconditioner in several])
    assert relative(together, separate) <= 1e-14
    assert relative(separate[0], separate[1]) > 1e-3


@each
def test_one_trace_for_all_values(case):
    traces = set()
    for seed in range(3):
        evaluated(case(seed=seed), operators(seed=seed), residuals(seed=seed))
        traces.add(evaluated._cache_size())
    assert len(traces) == 1


def renumbered(preconditioner, order):
    """The same preconditioner for unknowns in another order."""
    if isinstance(preconditioner, AbstractAttention):
        tokens = jax.tree.map(lambda leaf: leaf[order], preconditioner.tokens)
        return eqx.tree_at(lambda model: model.tokens, preconditioner, tokens)
    return jax.tree.map(lambda leaf: leaf[order][:, order] if leaf.ndim == 2 else leaf, preconditioner)


@each
def test_renumbering_the_unknowns_renumbers_the_matrix(case):
    preconditioner, systems = case(), operators()
    order = np.random.default_rng(0).permutation(SIZE)
    moved = systems[:, order][:, :, order]
    expected, found, unchanged = (
        evaluated(*arguments, residuals())[0]
        for arguments in (
            (preconditioner, systems),
            (renumbered(preconditioner, order), moved),
            (preconditioner, moved),
        )
    )
    expected = np.asarray(expected)[..., order, :][..., order]
    assert relative(found, expected) <= 1e-13
    if not isinstance(preconditioner, Jacobi):
        assert relative(unchanged, expected) > 1e-3


def shapes_of(jaxpr):
    for equation in jaxpr.eqns:
        yield from (variable.aval.shape for variable in equation.outvars)
        for parameter in equation.params.values():
            for part in parameter if isinstance(parameter, tuple) else (parameter,):
                if isinstance(part, (jax.extend.core.Jaxpr, jax.extend.core.ClosedJaxpr)):
                    yield from shapes_of(getattr(part, "jaxpr", part))


@each
@pytest.mark.parametrize("differentiated", [False, True])
def test_matrix_free_means_no_square_intermediate(case, differentiated):
    size = 37
    preconditioner, systems, vectors = case(size), operators(1, size), residuals(1, size)
    parameters, data = eqx.partition(preconditioner, preconditioner.trainable())

    def scalar(method, parameters):
        return jnp.sum(method(eqx.combine(parameters, data), systems))

    def squares(method):
        function = partial(scalar, method)
        jaxpr = jax.make_jaxpr(jax.grad(function) if differentiated else function)(parameters)
        return sum(shape.count(size) > 1 for shape in shapes_of(jaxpr.jaxpr))

    if case.matrix_free:
        assert squares(lambda model, systems: model.apply(systems, vectors)) == 0
    if case is not FREE:
        assert squares(lambda model, systems: model.matrix(systems)) > 0


@each
def test_training_leaves_the_data_alone(case):
    preconditioner = case()
    marks = preconditioner.trainable()
    for name in vars(preconditioner):
        assert set(jax.tree.leaves(getattr(marks, name))) == {name not in preconditioner.data_fields}
    assert any(jax.tree.leaves(marks))
    assert all(eqx.is_array(leaf) for leaf in jax.tree.leaves(preconditioner))


@each
def test_misfits_are_refused(unchecked, case):
    preconditioner, systems, vectors = case(), operators(), residuals()
    for wrong in (systems[0], systems[:, 1:]):
        with pytest.raises(ValueError, match=r"shape \(tasks, size, size\).*got"):
            preconditioner.matrix(wrong)
    with pytest.raises(ValueError, match=r"residuals of shape \(3, 7\).*got \(7,\)"):
        preconditioner.apply(systems, vectors[0])
    with pytest.raises(ValueError, match=r"dtype float64; got .* float32"):
        preconditioner.matrix(systems.astype(jnp.float32))
    with pytest.raises(ValueError, match="float64, float32"):
        preconditioner.apply(systems, vectors.astype(jnp.float32))
    if preconditioner.size is not None:
        with pytest.raises(ValueError, match=r"for 7 unknowns; got operators of shape \(3, 6, 6\)"):
            preconditioner.apply(systems[:, 1:, 1:], vectors[:, 1:])


@each
def test_one_dtype(unchecked, case):
    preconditioner = case()
    fields = {name: getattr(preconditioner, name) for name in vars(preconditioner)}
    with pytest.raises(ValueError, match=f"{type(preconditioner).__name__} got .*int"):
        type(preconditioner)(
            **{name: jax.tree.map(lambda leaf: leaf.astype(int), part) for name, part in fields.items()}
        )
    if len(fields) > 1:
        last = list(fields)[-1]
        with pytest.raises(ValueError, match="float32, float64"):
            type(preconditioner)(**fields | {last: fields[last].astype(jnp.float32)})
