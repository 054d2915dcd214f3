"""The tangent kernel of a rollout is `J Jᵀ`, with all cross terms between layers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.solver import adjoint_gradient, rollout
from jaxsolve.solver._tangent import rollout_kernel

from .systems import systems


def jacobian(preconditioner, *arguments, depth):
    outputs = jax.jacrev(lambda free: rollout(free, *arguments, depth=depth).ravel())(preconditioner)
    return np.asarray(outputs.reshape(outputs.shape[0], -1))


@pytest.mark.parametrize("depth", [1, 2, 9])
def test_it_is_the_product_of_jacobians(depth):
    *arguments, _ = systems(4, 5)
    rows = jacobian(*arguments, depth=depth)
    kernel = rollout_kernel(*arguments, depth=depth)
    assert np.linalg.norm(kernel - rows @ rows.T) <= 1e-13 * np.linalg.norm(rows @ rows.T)


def test_single_precision_is_kept():
    single, double = (rollout_kernel(*systems(4, 5, dtype=dtype)[:4], depth=6) for dtype in (jnp.float32, float))
    assert single.dtype == jnp.float32
    assert np.linalg.norm(np.asarray(single, float) - double) <= 1e-5 * np.linalg.norm(double)


def test_layers_taken_one_by_one_miss_the_cross_terms():
    *arguments, _ = systems(3, 4)
    kernel = rollout_kernel(*arguments, depth=4)

    def iterate(layers):
        state = arguments[3]
        for layer in layers:
            state = rollout(layer, *arguments[1:3], state, depth=1)
        return state.ravel()

    rows = jax.jacrev(iterate)(jnp.stack([arguments[0]] * 4)).reshape(12, -1)
    assert np.linalg.norm(kernel - rows @ rows.T) > 0.3 * np.linalg.norm(kernel)


def test_it_pushes_the_gradient_of_the_loss_forward():
    *arguments, solutions = systems(4, 5)
    error = rollout(*arguments, depth=5) - solutions
    _, gradient = adjoint_gradient(*arguments, solutions, depth=5)
    _, moved = jax.jvp(lambda free: rollout(free, *arguments[1:], depth=5, method="scan"), (arguments[0],), (gradient,))
    predicted = rollout_kernel(*arguments, depth=5) @ error.ravel() / error.size
    np.testing.assert_allclose(moved.ravel(), predicted, rtol=0, atol=1e-13 * np.abs(predicted).max())


def test_depth_zero_has_no_kernel():
    *arguments, _ = systems(2, 3)
    assert not rollout_kernel(*arguments, depth=0).any()


def test_memory_does_not_hold_a_jacobian():
    *arguments, _ = systems(6, 24)
    compiled = jax.jit(lambda *arrays: rollout_kernel(*arrays, depth=3)).lower(*arguments).compile()
    analysis = compiled.memory_analysis()
    assert analysis.temp_size_in_bytes < 8 * 6 * 24**3


def test_a_preconditioner_per_task_is_refused(unchecked):
    *arguments, _ = systems(3, 4, shared=False)
    with pytest.raises(ValueError, match="one preconditioner"):
        rollout_kernel(*arguments, depth=2)
