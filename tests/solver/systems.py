"""Small systems, symmetric in nothing, whose iteration has not converged, and its plain steps."""

import jax
import jax.numpy as jnp
import numpy as np


def systems(tasks, size, *, shared=True, dtype=float, seed=0, rate=0.4):
    """Preconditioner, operators, right-hand sides, initial and solutions, with contraction of about ``1 - rate``."""
    random = np.random.default_rng(seed)
    operators = np.eye(size) + 0.4 * random.standard_normal((tasks, size, size)) / np.sqrt(size)
    shape = (size, size) if shared else (tasks, size, size)
    preconditioner = rate * (np.eye(size) + 0.4 * random.standard_normal(shape) / np.sqrt(size))
    solutions, initial = random.standard_normal((2, tasks, size))
    right_hand_sides = np.einsum("tij,tj->ti", operators, solutions)
    arrays = (preconditioner, operators, right_hand_sides, initial, solutions)
    return tuple(jnp.asarray(array, dtype) for array in arrays)


def plain(preconditioner, operators, right_hand_sides, initial, *, depth):
    """The last iterate, by a scan over the steps of each task that shares nothing with the library."""

    def one(matrix, operator, side, start):
        def step(state, _):
            return state + jnp.dot(matrix, side - jnp.dot(operator, state)), None

        return jax.lax.scan(step, start, None, length=depth)[0]

    axis = None if preconditioner.ndim == 2 else 0
    return jax.vmap(one, in_axes=(axis, 0, 0, 0))(preconditioner, operators, right_hand_sides, initial)


def relative(measured, reference):
    """Relative error in the Frobenius norm."""
    return np.linalg.norm(np.asarray(measured) - np.asarray(reference)) / np.linalg.norm(reference)
