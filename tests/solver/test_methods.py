"""Every algorithm of the adjoint against automatic differentiation of plain steps, and what each of them promises."""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.solver import METHODS, choose_method, rollout, training_loss

from .systems import plain, relative, systems

NAMED = METHODS[1:]
ADJOINTS = METHODS[2:]
ARGUMENTS = ("preconditioner", "operators", "right_hand_sides", "initial")


def pulled_back(function, arguments, cotangent):
    final, pull_back = jax.vjp(jax.jit(function), *arguments)
    return final, pull_back(cotangent)


@lru_cache
def case(tasks, size, depth, shared, dtype=float):
    """Arguments, a cotangent that is no error of theirs, and what differentiating the plain steps gives for them."""
    *arguments, solutions = systems(tasks, size, shared=shared, dtype=dtype, rate=min(0.4, 2 / depth))
    cotangent = jnp.asarray(np.random.default_rng(9).standard_normal((tasks, size)), dtype)
    final, cotangents = pulled_back(partial(plain, depth=depth), arguments, cotangent)
    assert 1e-3 < relative(final, solutions) / relative(arguments[-1], solutions) < 1
    return arguments, cotangent, final, cotangents


def check(method, tasks, size, depth, shared, tolerance, dtype=float):
    arguments, cotangent, expected, expected_cotangents = case(tasks, size, depth, shared, dtype)
    final, cotangents = pulled_back(partial(rollout, depth=depth, method=method), arguments, cotangent)
    assert relative(final, expected) <= tolerance
    for name, found, reference in zip(ARGUMENTS, cotangents, expected_cotangents, strict=True):
        assert found.dtype == dtype
        assert relative(found, reference) <= tolerance, name


@pytest.mark.parametrize(
    ("tasks", "size", "depth", "shared"),
    [(5, 6, 2, True), (4, 5, 13, False), (9, 48, 5, True), (9, 48, 5, False), (2, 3, 64, True)],
)
@pytest.mark.parametrize("method", NAMED)
def test_pulls_back_to_every_argument_like_automatic_differentiation(method, tasks, size, depth, shared):
    check(method, tasks, size, depth, shared, 1e-13)


@pytest.mark.parametrize(("depth", "shared"), [(1024, True), (4096, False), (1003, True)])
@pytest.mark.parametrize("method", ["checkpoint", "blocked", "panels", "doubling"])
def test_powers_of_matrices_stay_exact_at_large_depth(method, depth, shared):
    check(method, 2, 6, depth, shared, 1e-11)


@pytest.mark.parametrize("method", ADJOINTS)
def test_ten_thousand_steps(method):
    check(method, 1, 3, 10_000, True, 1e-11)


@pytest.mark.parametrize("method", NAMED)
def test_single_precision(method):
    arguments, cotangent, _, exact = case(4, 5, 40, True)
    rounded = [array.astype(jnp.float32) for array in arguments]
    function = partial(rollout, depth=40, method=method)
    _, cotangents = pulled_back(function, rounded, cotangent.astype(jnp.float32))
    for found, reference in zip(cotangents, exact, strict=True):
        assert found.dtype == jnp.float32
        assert 0 < relative(found, reference) <= 1e-5


def test_no_matrix_of_these_tests_is_symmetric():
    for shared in (True, False):
        for matrices in case(4, 5, 13, shared)[0][:2]:
            assert relative(jnp.swapaxes(matrices, -1, -2), matrices) > 0.1


@pytest.mark.parametrize("wanted", range(4), ids=ARGUMENTS)
@pytest.mark.parametrize("method", ["accumulate", "panels", "doubling"])
def test_one_cotangent_alone_is_the_one_among_all(method, wanted):
    arguments, cotangent, _, expected = case(4, 5, 21, False)

    def inner(argument):
        changed = [argument if place == wanted else array for place, array in enumerate(arguments)]
        return jnp.sum(rollout(*changed, depth=21, method=method) * cotangent)

    assert relative(jax.jit(jax.grad(inner))(arguments[wanted]), expected[wanted]) <= 1e-13


@pytest.mark.parametrize("method", NAMED)
def test_the_gradient_of_a_map_is_the_map_of_gradients(method):
    matrix, *others, solutions = systems(3, 4)
    several = jnp.stack([matrix, 0.5 * matrix, matrix.T])

    def loss(matrix, depth=18):
        return training_loss(rollout(matrix, *others, depth=depth, method=method), solutions)

    mapped = jax.jit(jax.grad(lambda matrices: jax.vmap(loss)(matrices).sum()))(several)
    alone = jax.jit(jax.grad(loss))
    for found, one in zip(mapped, several, strict=True):
        assert relative(found, alone(one)) <= 1e-13


@pytest.mark.parametrize("method", ADJOINTS)
def test_maps_over_right_hand_sides_that_share_a_preconditioner(method):
    matrix, operators, _, initial, _ = systems(2, 4)
    several = jnp.asarray(np.random.default_rng(1).standard_normal((3, 2, 4)))

    def total(function, matrix):
        finals = jax.vmap(lambda sides: function(matrix, operators, sides, initial, depth=9))(several)
        return jnp.sum(finals**2)

    functions = partial(rollout, method=method), plain
    found, expected = (jax.jit(jax.grad(partial(total, function)))(matrix) for function in functions)
    assert relative(found, expected) <= 1e-13


@pytest.mark.parametrize("method", NAMED)
def test_depth_zero_returns_the_start_bit_for_bit(method):
    *arguments, _ = systems(3, 4)
    start = arguments[-1].at[0, 0].set(-0.0)
    final, pull_back = jax.vjp(partial(rollout, depth=0, method=method), *arguments[:-1], start)
    assert np.asarray(final).tobytes() == np.asarray(start).tobytes()
    *others, initial = pull_back(start)
    assert np.array_equal(initial, start)
    assert not any(np.any(cotangent) for cotangent in others)


def test_plain_steps_have_forward_mode_and_second_derivatives():
    matrix, *others, solutions = systems(2, 3)

    def loss(function, matrix):
        return training_loss(function(matrix, *others, depth=5), solutions)

    ours, reference = (partial(loss, function) for function in (partial(rollout, method="scan"), plain))
    assert relative(jax.jit(jax.jacfwd(ours))(matrix), jax.jit(jax.grad(reference))(matrix)) <= 1e-14
    assert relative(jax.jit(jax.hessian(ours))(matrix), jax.jit(jax.hessian(reference))(matrix)) <= 1e-13


@pytest.mark.parametrize("method", ADJOINTS)
def test_the_adjoints_differentiate_in_reverse_mode_only(method):
    matrix, *others, solutions = systems(2, 3)
    direction = jnp.asarray(np.random.default_rng(3).standard_normal((3, 3)))

    def slope(function, matrix):
        gradient = jax.grad(lambda p: training_loss(function(p, *others, depth=11), solutions))(matrix)
        return jnp.sum(gradient * direction)

    ours = partial(rollout, method=method)
    product, expected = (jax.jit(jax.grad(partial(slope, function)))(matrix) for function in (ours, plain))
    assert relative(product, expected) <= 1e-12
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda p: ours(p, *others, depth=11), (matrix,), (direction,))


@pytest.mark.parametrize("method", NAMED)
def test_the_program_does_not_grow_with_the_depth(method):
    arguments = systems(2, 3)[:-1]

    def equations(depth):
        gradient = jax.grad(lambda *a: rollout(*a, depth=depth, method=method).sum(), range(4))
        return str(jax.make_jaxpr(gradient)(*arguments)).count(" = ")

    assert equations(1_003) == equations(10_003) == equations(100_003)


def temporary_bytes(method, depth, tasks=4, size=8):
    arguments = systems(tasks, size)[:-1]
    gradient = jax.jit(jax.grad(lambda matrix, *a: rollout(matrix, *a, depth=depth, method=method).sum()))
    return gradient.lower(*arguments).compile().memory_analysis().temp_size_in_bytes


def test_memory_is_what_the_methods_promise():
    assert temporary_bytes("scan", 4096) >= 20 * temporary_bytes("checkpoint", 4096)
    assert temporary_bytes("scan", 65_536) >= 20 * temporary_bytes("panels", 65_536)
    assert temporary_bytes("doubling", 65_536) == temporary_bytes("doubling", 512)
    assert 3 < temporary_bytes("checkpoint", 65_536) / temporary_bytes("checkpoint", 4096) < 5


def test_states_cannot_be_recovered_from_the_last_one_after_training_has_succeeded():
    _, operators, _, initial, solutions = systems(1, 6)
    errors = {}
    for rate in (0.05, 0.9):
        step = jnp.eye(6) - rate * operators[0]
        first = initial[0] - solutions[0]
        state = jnp.linalg.matrix_power(step, 40) @ first
        for _ in range(40):
            state = jnp.linalg.solve(step, state)
        errors[rate] = relative(state, first)
    assert errors[0.05] <= 1e-12
    assert errors[0.9] > 100


@pytest.mark.parametrize(
    ("tasks", "size", "depth", "method"),
    [
        (64, 64, 48, "accumulate"),
        (64, 64, 49, "blocked"),
        (64, 64, 255, "blocked"),
        (64, 64, 256, "panels"),
        (64, 64, 511, "panels"),
        (16, 128, 1024, "doubling"),
        (16, 64, 4096, "doubling"),
        (1, 8192, 100_000, "checkpoint"),
        (1, 8192, 1000, "accumulate"),
    ],
)
def test_the_choice_follows_the_shapes(tasks, size, depth, method):
    assert choose_method(tasks, size, depth) == method


@pytest.mark.parametrize("depth", [3, 30, 50, 80])
def test_auto_is_the_method_chosen(depth):
    *arguments, _ = systems(3, 8)
    chosen = choose_method(3, 8, depth)
    assert np.array_equal(rollout(*arguments, depth=depth), rollout(*arguments, depth=depth, method=chosen))


def test_an_unknown_method_is_refused(unchecked):
    *arguments, _ = systems(2, 3)
    with pytest.raises(ValueError, match="auto, scan, accumulate, checkpoint, blocked, panels, doubling; got 'fast'"):
        rollout(*arguments, depth=2, method="fast")


def test_no_tasks_give_no_states():
    *arguments, _ = systems(3, 4)
    empty = [arguments[0], *(array[:0] for array in arguments[1:])]
    for method in METHODS:
        assert rollout(*empty, depth=50, method=method).shape == (0, 4)
