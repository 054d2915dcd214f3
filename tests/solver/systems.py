"""Small systems, symmetric in nothing, whose iteration has not converged."""

import jax.numpy as jnp
import numpy as np


def systems(tasks, size, *, shared=True, dtype=float, seed=0):
    """Preconditioner, operators, right-hand sides, initial and solutions, with contraction of about 0.7 per step."""
    random = np.random.default_rng(seed)
    operators = np.eye(size) + 0.4 * random.standard_normal((tasks, size, size)) / np.sqrt(size)
    shape = (size, size) if shared else (tasks, size, size)
    preconditioner = 0.4 * (np.eye(size) + 0.4 * random.standard_normal(shape) / np.sqrt(size))
    solutions, initial = random.standard_normal((2, tasks, size))
    right_hand_sides = np.einsum("tij,tj->ti", operators, solutions)
    arrays = (preconditioner, operators, right_hand_sides, initial, solutions)
    return tuple(jnp.asarray(array, dtype) for array in arrays)
