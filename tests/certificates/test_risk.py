"""Risk of measured errors, and the count of inequalities that do not hold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.certificates import count_violations, depth_risk
from jaxsolve.solver import training_loss, trajectory

RANDOM = np.random.default_rng(0)


def test_depth_risk_is_twice_the_training_loss_at_every_depth():
    operators = jnp.asarray(np.eye(5) + 0.2 * RANDOM.standard_normal((7, 5, 5)))
    right_hand_sides, solutions = jnp.asarray(RANDOM.standard_normal((2, 7, 5)))
    iterates = trajectory(0.5 * jnp.eye(5), operators, right_hand_sides, jnp.zeros((7, 5)), depth=6)
    risk = depth_risk(iterates, solutions)
    assert risk.shape == (7,)
    for depth in range(7):
        assert float(risk[depth]) == pytest.approx(2 * float(training_loss(iterates[depth], solutions)), rel=1e-14)
    assert float(risk[0]) == pytest.approx((np.asarray(solutions) ** 2).sum() / (7 * 5), rel=1e-14)


def test_one_task_that_diverges_shows():
    iterates = jnp.zeros((2, 3, 2)).at[1, 2, 0].set(jnp.inf)
    assert depth_risk(iterates, jnp.zeros((3, 2))).tolist() == [0, np.inf]


@pytest.mark.parametrize(("value", "bound", "count"), [(1, 2, 0), (np.nan, 2, 1), (0.5, 0.4, 1), (np.inf, 2, 1)])
@pytest.mark.parametrize("axis", [0, 1])
def test_each_inequality_counts_once(value, bound, count, axis):
    errors, bounds = (np.expand_dims(np.array([1.0, x]), axis) for x in (value, bound))
    assert int(count_violations(errors, bounds)) == count
    assert int(jax.jit(count_violations)(errors, bounds)) == count


def test_an_infinite_bound_is_vacuous_and_a_bound_that_is_not_a_number_is_violated():
    assert int(count_violations(np.ones((1, 1)), np.full((1, 1), np.inf))) == 0
    assert int(count_violations(np.ones((1, 1)), np.full((1, 1), np.nan))) == 1
    assert int(count_violations(np.full((1, 1), np.inf), np.ones((1, 1)))) == 1


@pytest.mark.parametrize(
    ("dtype", "relative", "absolute"), [(np.float64, 1e-10, 1e-13), (np.float32, 1.22e-4, 3.05e-5)]
)
def test_default_tolerances(dtype, relative, absolute):
    for excess, count in ((0.9 * relative, 0), (1.1 * relative, 1)):
        errors, bounds = np.array([[1e-3], [1.0 + excess]], dtype), np.ones((2, 1), dtype)
        assert int(count_violations(errors, bounds)) == count
    for scale in (1e-8, 1.0, 1e8):
        for stalled, count in ((0.9 * absolute, 0), (1.1 * absolute, 1)):
            errors, bounds = np.array([[scale], [stalled * scale]], dtype), np.array([[scale], [0.0]], dtype)
            assert int(count_violations(errors, bounds)) == count


def test_the_scale_of_one_task_does_not_excuse_another():
    errors, bounds = np.array([[1e14, 1.0], [1.0, 1.1]]), np.array([[1e14, 1.0], [1.0, 1.0]])
    assert int(count_violations(errors, bounds)) == 1
    assert int(count_violations(errors, bounds, absolute=0.2)) == 0
    assert int(count_violations(errors, bounds, absolute=np.array([0.2, 0.0]))) == 1
    assert int(count_violations(errors, bounds, relative=0.2)) == 0


def test_misuse_is_refused(unchecked):
    ones = np.ones((2, 3))
    with pytest.raises(ValueError, match=r"one shape \(iterates, tasks\)"):
        count_violations(ones, ones[:1])
    with pytest.raises(ValueError, match=r"\(3,\) and \(3,\)"):
        count_violations(ones[0], ones[0])
    with pytest.raises(ValueError, match="one floating dtype"):
        count_violations(ones.astype(np.float32), ones)
    for relative in (-0.1, 1.0, np.nan):
        with pytest.raises(ValueError, match=r"relative lies in \[0, 1\)"):
            count_violations(ones, ones, relative=relative)
    for absolute in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="absolute is at least 0 and finite"):
            count_violations(ones, ones, absolute=absolute)
    with pytest.raises(ValueError, match=r"has shape \(3,\); got \(2,\)"):
        count_violations(ones, ones, absolute=np.ones(2))
    with pytest.raises(ValueError, match=r"got \(2, 3\) and \(3,\)"):
        depth_risk(jnp.ones((2, 3)), jnp.ones(3))
    with pytest.raises(ValueError, match="floating"):
        depth_risk(jnp.ones((2, 3, 4), int), jnp.ones((3, 4), int))
