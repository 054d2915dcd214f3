"""Draws that the tests run here and in processes of their own: a digest of everything that a run gives.

``python -m tests.montecarlo.program TASK [ARGUMENT...]`` prints or writes what the tests compare.
"""

import hashlib
import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolve import Ensemble, logarithmic_edges, monte_carlo

COUNT = 203  # 26 blocks of 8, the last of 3
KEY = 11
STOP = 0.02
OPTIONS = {"covariance": True, "edges": logarithmic_edges(1e-3, 1e2, accuracy=0.1), "keep": True}
PAUSE = "PAUSE_OF_A_DRAW"


def network(*, key):
    """Sums over inner dimensions that a thread pool could split: a random network and its gradient."""
    weights = jax.random.normal(key, (64 * 64 + 64 * 128,))
    square, inputs = weights[: 64 * 64].reshape(64, 64) / 8, weights[64 * 64 :].reshape(64, 128)

    def loss(square):
        return jnp.mean(jnp.tanh(square @ jnp.tanh(square @ inputs)) ** 2)

    value, gradient = jax.value_and_grad(loss)(square)
    return {"value": value, "gradient": gradient[0, :3], "sign": value > 0.3}


def _paused(value):
    time.sleep(float(os.environ.get(PAUSE, "0")))
    return value


def slow(*, key):
    """A draw that takes as long as the environment says."""
    drawn = jax.random.normal(key, (3,))
    shape = jax.ShapeDtypeStruct(drawn.shape, drawn.dtype)
    return jnp.exp(jax.pure_callback(_paused, shape, drawn, vmap_method="sequential"))


def digest(found: Ensemble) -> str:
    """Of every bit of a result."""
    tree = (
        found.count, found.finite, found.mean, found.variance, found.standard_error, found.minimum, found.maximum,
        found.covariance, found.histogram.counts, found.values,
    )  # fmt: skip
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        total.update(np.asarray(leaf).tobytes())
    return total.hexdigest()


def run(function=network, count=COUNT, **options) -> Ensemble:
    return monte_carlo(function, jax.random.key(KEY), count, **{**OPTIONS, **options})


def chunks_and_devices() -> None:
    """A line per chunk and number of devices."""
    for devices, chunk in ((1, None), (8, 1), (8, 2), (8, None)):
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:devices]), ("any",))
        print(devices, chunk, digest(run(mesh=mesh, chunk=chunk)))
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("rows", "columns"))
    print(8, "grid", digest(run(mesh=mesh)))
    found = run(standard_error=STOP)
    print(8, f"stopped at {found.count}", digest(found))


def one_of_two(port: str, process: str, checkpoint: str) -> None:
    """One of two processes with two devices each, which stop half-way and go on."""
    jax.distributed.initialize(f"localhost:{port}", 2, int(process))
    run(count=144, checkpoint=checkpoint)
    print(len(jax.devices()), "devices", digest(run(chunk=2, checkpoint=checkpoint)))


def until_killed(checkpoint: str) -> None:
    run(slow, checkpoint=checkpoint, checkpoint_seconds=0.0, chunk=1)
    print("finished")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    tasks = {task.__name__: task for task in (chunks_and_devices, one_of_two, until_killed)}
    tasks[sys.argv[1]](*sys.argv[2:])
