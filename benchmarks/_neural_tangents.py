"""The kernel of one case by neural-tangents, run by the interpreter of an environment that has it.

Prints one line of JSON: CPU seconds per call of the kernel and of a matrix product, by rounds; `K v` for a fixed `v`;
and versions. It was written for neural-tangents 0.6.5 on jax 0.4.23, in the form in which that is fastest: parameters
stored as (inputs, outputs), without which structured derivatives fall back to explicit Jacobians, and ``vmap_axes``.
"""

import json
import sys
import time
from itertools import pairwise

import jax
import jax.numpy as jnp
import neural_tangents
import numpy as np

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_threefry_partitionable", True)


def weights_of(widths):
    """The weights of ``MLP.initialise(widths, key=jax.random.key(0))``, transposed."""
    shapes = [(above, below) for below, above in pairwise(widths)]
    sizes = [rows * columns for rows, columns in shapes]
    entries = jax.random.normal(jax.random.key(0), (sum(sizes),), jnp.float64)
    variances = [*(2 / width for width in widths[:-2]), 1 / widths[-2]]
    ends = np.cumsum([0, *sizes])
    return [
        (variance**0.5 * entries[start:end].reshape(shape)).T
        for variance, start, end, shape in zip(variances, ends[:-1], ends[1:], shapes, strict=True)
    ]


def apply(weights, inputs):
    """The network."""
    hidden = inputs
    for weight in weights[:-1]:
        hidden = jnp.maximum(hidden @ weight, 0)
    return hidden @ weights[-1]


def seconds_of(function, least=0.05):
    """CPU seconds per call, over at least ``least`` of them."""
    calls, start = 0, time.process_time()
    while not calls or time.process_time() - start < least:
        function()
        calls += 1
    return (time.process_time() - start) / calls


def main(width, hidden, inputs, outputs, examples, rounds, product):
    """Time one case."""
    weights = weights_of((inputs, *hidden * (width,), outputs))
    data = jnp.asarray(np.random.default_rng(0).standard_normal((examples, inputs)))
    kernel = jax.jit(
        neural_tangents.empirical_ntk_fn(
            apply,
            trace_axes=(),
            vmap_axes=0,
            implementation=neural_tangents.NtkImplementation.STRUCTURED_DERIVATIVES,
        ),
        static_argnums=1,
    )
    square = jnp.asarray(np.random.default_rng(1).standard_normal((product, product)))
    multiply = jax.jit(jnp.matmul)
    runs = (
        lambda: kernel(data, None, weights).block_until_ready(),
        lambda: multiply(square, square).block_until_ready(),
    )
    matrix = np.asarray(runs[0]()).transpose(0, 2, 1, 3).reshape(examples * outputs, -1)
    runs[1]()
    seconds = ([], [])
    for _ in range(rounds):
        for found, run in zip(seconds, runs, strict=True):
            found.append(seconds_of(run))
    versions = {"jax": jax.__version__, "neural-tangents": neural_tangents.__version__}
    probe = (matrix @ np.cos(np.arange(len(matrix)))).tolist()
    print(json.dumps({"seconds": seconds, "probe": probe, "versions": versions}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
