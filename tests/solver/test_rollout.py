"""The Richardson iteration against explicit steps, and its laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.solver import rollout, training_loss, trajectory

from .systems import systems


def by_hand(preconditioner, operators, right_hand_sides, initial, depth):
    iterates = [np.asarray(initial)]
    for _ in range(depth):
        rows = []
        for i, state in enumerate(iterates[-1]):
            matrix = np.asarray(preconditioner if preconditioner.ndim == 2 else preconditioner[i])
            rows.append(state + matrix @ (np.asarray(right_hand_sides[i]) - np.asarray(operators[i]) @ state))
        iterates.append(np.array(rows))
    return np.array(iterates)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize(("tasks", "size"), [(5, 4), (1, 1), (3, 3)])
def test_steps_are_those_of_each_task(tasks, size, shared, dtype):
    *system, _ = systems(tasks, size, shared=shared, dtype=dtype)
    expected = by_hand(*system, 6)
    iterates = trajectory(*system, depth=6)
    assert iterates.shape == (7, tasks, size)
    assert iterates.dtype == dtype
    tolerance = 32 * np.finfo(dtype).eps * np.abs(expected).max()
    assert np.abs(np.asarray(iterates) - expected).max() <= tolerance
    assert np.abs(np.asarray(rollout(*system, depth=6)) - expected[-1]).max() <= tolerance


def test_depth_zero_returns_the_initial_state_bit_for_bit():
    *system, _ = systems(3, 4)
    assert np.array_equal(rollout(*system, depth=0), system[-1])
    assert np.array_equal(trajectory(*system, depth=0), system[-1][None])


def test_a_rollout_continues_where_the_last_one_ended():
    *system, _ = systems(3, 4)
    first = rollout(*system, depth=3)
    assert np.allclose(rollout(*system[:-1], first, depth=4), rollout(*system, depth=7), rtol=1e-14, atol=1e-15)


def test_the_error_is_a_matrix_power_of_the_first_error():
    preconditioner, operators, right_hand_sides, initial, solutions = systems(4, 6)
    final = rollout(preconditioner, operators, right_hand_sides, initial, depth=9)
    for i in range(4):
        power = np.linalg.matrix_power(np.eye(6) - np.asarray(preconditioner @ operators[i]), 9)
        expected = power @ np.asarray(initial[i] - solutions[i])
        assert np.linalg.norm(np.asarray(final[i] - solutions[i]) - expected) <= 1e-14 * np.linalg.norm(initial[i])
        assert np.linalg.norm(expected) > 1e-3


def test_a_solution_stays():
    preconditioner, operators, right_hand_sides, _, _ = systems(3, 4)
    whole, solutions = jnp.round(4 * operators), jnp.round(4 * right_hand_sides)
    exact = jnp.einsum("tij,tj->ti", whole, solutions)
    assert np.array_equal(rollout(preconditioner, whole, exact, solutions, depth=5), solutions)


def test_an_unstable_iteration_overflows_in_plain_sight():
    *system, _ = systems(2, 3)
    assert not np.isfinite(np.asarray(rollout(100.0 * system[0], *system[1:], depth=400))).any()


def test_maps_over_right_hand_sides_of_one_task():
    preconditioner, operators, _, initial, _ = systems(2, 4)
    many = jnp.asarray(np.random.default_rng(1).standard_normal((3, 2, 4)))
    stacked = jax.vmap(lambda sides: rollout(preconditioner, operators, sides, initial, depth=5))(many)
    for i in range(3):
        assert np.allclose(stacked[i], rollout(preconditioner, operators, many[i], initial, depth=5), rtol=1e-14)


def test_forward_mode_agrees_with_a_difference_quotient():
    preconditioner, *system = systems(3, 4)[:-1]
    direction = jnp.asarray(np.random.default_rng(2).standard_normal((4, 4)))
    function = jax.jit(lambda matrix: rollout(matrix, *system, depth=6, method="scan"))
    _, tangent = jax.jvp(function, (preconditioner,), (direction,))
    step = 1e-5
    quotient = (function(preconditioner + step * direction) - function(preconditioner - step * direction)) / (2 * step)
    assert np.linalg.norm(tangent - quotient) <= 1e-8 * np.linalg.norm(tangent)


def test_training_loss_is_half_the_mean_square():
    final, solutions = np.random.default_rng(3).standard_normal((2, 5, 7))
    loss = training_loss(jnp.asarray(final), jnp.asarray(solutions))
    assert float(loss) == pytest.approx(((final - solutions) ** 2).sum() / (2 * 5 * 7), rel=1e-14)
    assert jax.grad(training_loss)(jnp.asarray(final), jnp.asarray(final)).tolist() == np.zeros((5, 7)).tolist()


@pytest.mark.parametrize("depth", [-1, 2.5, 3.0, True, "3", None])
def test_a_depth_that_is_not_a_count_is_refused(unchecked, depth):
    *system, _ = systems(2, 3)
    for function in (rollout, trajectory):
        with pytest.raises(ValueError, match="integer of at least 0; got"):
            function(*system, depth=depth)


def test_a_traced_depth_is_refused_and_a_numpy_integer_is_not(unchecked):
    *system, _ = systems(2, 3)
    with pytest.raises(ValueError, match="static"):
        jax.jit(lambda depth: rollout(*system, depth=depth))(3)
    assert np.array_equal(rollout(*system, depth=np.int64(3)), rollout(*system, depth=3))


@pytest.mark.parametrize(
    ("position", "shape", "message"),
    [
        (1, (3, 3), "task axis in front"),
        (1, (2, 3, 4), r"operators have shape \(tasks, size, size\)"),
        (0, (3, 3, 1), r"shape \(3, 3\), shared, or \(2, 3, 3\)"),
        (0, (1, 3, 3), "shared"),
        (2, (3, 2), r"vectors of shape \(2, 3\).*right_hand_sides \(3, 2\)"),
        (2, (2, 3, 1), "one row per task"),
        (3, (3,), r"initial \(3,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(unchecked, position, shape, message):
    system = list(systems(2, 3)[:-1])
    system[position] = jnp.ones(shape)
    with pytest.raises(ValueError, match=message):
        rollout(*system, depth=2)


def test_mixed_and_integer_dtypes_are_refused(unchecked):
    *system, _ = systems(2, 3)
    with pytest.raises(ValueError, match="initial float32"):
        rollout(*system[:-1], system[-1].astype(jnp.float32), depth=2)
    with pytest.raises(ValueError, match="floating dtype; got preconditioner int"):
        rollout(*(array.astype(int) for array in system), depth=2)
    with pytest.raises(ValueError, match=r"got \(2, 3\) and \(3, 3\)"):
        training_loss(jnp.ones((2, 3)), jnp.ones((3, 3)))
