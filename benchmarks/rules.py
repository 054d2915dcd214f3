"""Gradients of alternatives to backpropagation: the rules of the library against those of BioTorch.

Both get the same network, data and feedback: feedback alignment (FA), direct feedback alignment (DFA) and sign symmetry
with uniform (uSF), redrawn (brSF) and fixed (frSF) magnitudes, for dense and for convolutional networks with biases, in
single and in double precision. Where BioTorch chooses magnitudes itself, the library takes over what it drew; the signs
and all the rest are its own. The direct feedback of a convolution is there one small kernel, with the output error
repeated at every position; it is written out as the matrix that it is.

BioTorch runs in a process and an environment of its own, named with ``--biotorch PYTHON``, on the same core and with
one thread. It cannot take turns with the library: the ratio of times is one of medians, without an interval, and says
less here than elsewhere.
"""

import json
import math
import os
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxsolve.feedback import (
    MLP,
    AbstractBackwardRule,
    AbstractNetwork,
    Convolution,
    ConvolutionalNetwork,
    DirectFeedbackAlignment,
    FeedbackAlignment,
    SignSymmetry,
)

from . import _timing

MODES = {"fa": "FA", "dfa": "DFA", "usf": "uSF", "brsf": "brSF", "frsf": "frSF"}
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


class Case(NamedTuple):
    """Examples, shape of an example, channels of convolutions, widths of dense hidden layers, outputs, dtype."""

    examples: int
    input_shape: tuple[int, ...]
    channels: tuple[int, ...]
    hidden: tuple[int, ...]
    outputs: int
    dtype: str


CASES = tuple(
    Case(*sizes, dtype)
    for sizes in ((128, (784,), (), (256, 256), 10), (64, (1, 14, 14), (8, 16), (64,), 10))
    for dtype in TOLERANCE
)


class Problem(NamedTuple):
    """A network with biases, data, and matrices for the modes that are given some, in the shapes of BioTorch."""

    network: AbstractNetwork
    inputs: np.ndarray
    targets: np.ndarray
    feedback: dict[str, list[np.ndarray]]


def problem(case: Case, seed: int = 0) -> Problem:
    """Convolutions are 3 by 3 with stride 2 and one zero on every side; nothing is at its initialisation."""
    random, image = np.random.default_rng(seed), case.input_shape
    convolutions, shapes = [], []
    for channels in case.channels:
        convolutions.append(Convolution(image, (3, 3), (2, 2), ((1, 1), (1, 1))))
        shapes.append((channels, convolutions[-1].fan_in))
        image = (channels, *convolutions[-1].positions)
    widths = (math.prod(image), *case.hidden, case.outputs)
    shapes += zip(widths[1:], widths[:-1], strict=True)

    def drawn(*shape):
        return (random.standard_normal(shape) / shape[-1] ** 0.5).astype(case.dtype)

    weights, biases = [drawn(*shape) for shape in shapes], [drawn(shape[0]) for shape in shapes]
    feedback = {
        "fa": [drawn(*shape) for shape in shapes[1:]],
        "dfa": [drawn(case.outputs, fan_in) for _, fan_in in shapes[1:]],
        "frsf": [np.abs(drawn(*shape)) for shape in shapes[1:]],
    }
    network = ConvolutionalNetwork(weights, convolutions, biases) if convolutions else MLP(weights, biases)
    inputs = random.standard_normal((case.examples, *case.input_shape)).astype(case.dtype)
    return Problem(network, inputs, random.standard_normal((case.examples, case.outputs)).astype(case.dtype), feedback)


@eqx.filter_jit
def gradients(
    network: AbstractNetwork, inputs: jax.Array, targets: jax.Array, rule: AbstractBackwardRule
) -> AbstractNetwork:
    """The update direction of a rule for half the squared residual, averaged over the examples."""
    forward = network.forward(inputs)
    return rule.gradients(network, forward, (forward.outputs - targets) / len(inputs))


def rules(found: Problem, peer: Mapping[str, np.ndarray]) -> dict[str, AbstractBackwardRule]:
    """The rules of the library, with the magnitudes that BioTorch drew."""
    fixed, count = found.feedback, len(found.network.weights)

    def magnitudes(mode):
        matrices = (peer[f"{mode}_matrix_1_{index}"] for index in range(1, count))
        return [np.abs(matrix).reshape(len(matrix), -1).T for matrix in matrices]

    scales = [jnp.asarray(matrix.max()) for matrix in magnitudes("usf")]
    return {
        "fa": FeedbackAlignment([matrix.T for matrix in fixed["fa"]]),
        "dfa": DirectFeedbackAlignment(
            [_written_out(*pair) for pair in zip(found.network.connections[1:], fixed["dfa"], strict=True)]
        ),
        "usf": SignSymmetry(scales),
        "brsf": SignSymmetry(magnitudes("brsf")),
        "frsf": SignSymmetry([matrix.T for matrix in fixed["frsf"]]),
    }


def _written_out(connection, matrix: np.ndarray) -> jax.Array:
    """From the outputs to the layer below; a convolution sends the error of an output back from every position."""
    outputs, positions = len(matrix), math.prod(connection.positions) if isinstance(connection, Convolution) else 1
    repeated = jnp.repeat(jnp.eye(outputs, dtype=matrix.dtype), positions, axis=1)
    return connection.send_back(repeated, jnp.asarray(matrix.T)).T


def run_biotorch(found: Problem, rounds: int, python: str | None) -> dict[str, Any]:
    """Gradients, matrices and CPU seconds of BioTorch, or the reason why there are none."""
    if python is None:
        return {"reason": "no environment was named"}
    convolutions = [side for side in found.network.connections if isinstance(side, Convolution)]
    geometries = [(one.image_shape, one.kernel_shape, one.strides, [1, 1]) for one in convolutions]
    lists = {"weights": found.network.weights, "biases": found.network.biases or (), **found.feedback}
    given = {f"{name}_{index}": array for name, arrays in lists.items() for index, array in enumerate(arrays)}
    given |= {f"{name}_count": len(arrays) for name, arrays in lists.items()}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "given.npz"), Path(folder, "found.npz")
        np.savez(source, inputs=found.inputs, targets=found.targets, geometries=json.dumps(geometries), **given)
        command = [python, str(Path(__file__).with_name("_biotorch.py")), str(source), str(target), str(rounds)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": ""}
        )
        if done.returncode:
            return {"reason": (done.stderr.strip().splitlines() or ["failed"])[-1]}
        with np.load(target) as file:
            arrays = dict(file)
    return {"reason": None, "arrays": arrays, **json.loads(done.stdout.splitlines()[-1])}


def compare(case: Case, found: Problem, peer: Mapping[str, np.ndarray]) -> dict[str, list[float]]:
    """Relative differences of the gradients, by mode: one number per layer, of its weights and biases together.

    Raises
    ------
    AssertionError
        Where one is above 1e-5 in single or 1e-12 in double precision, where two rules have the same gradients, where
        the signs that BioTorch sends back with are not those of the weights, and where it redraws what is fixed or does
        not redraw what is not.
    """
    errors: dict[str, list[float]] = {}
    first: dict[str, np.ndarray] = {}
    for mode, rule in rules(found, peer).items():
        own = gradients(found.network, found.inputs, found.targets, rule)
        errors[mode] = []
        for index, (weight, bias) in enumerate(zip(own.weights, own.biases or (), strict=True)):
            ours = np.concatenate([np.asarray(weight), np.asarray(bias)[:, None]], axis=1)
            theirs = np.concatenate([peer[f"{mode}_weight_{index}"], peer[f"{mode}_bias_{index}"][:, None]], axis=1)
            error = float(np.linalg.norm(theirs - ours) / np.linalg.norm(ours))
            errors[mode].append(error)
            assert error <= TOLERANCE[case.dtype], f"{MODES[mode]}, layer {index + 1}: relative difference {error:.1e}"
        first[mode] = np.asarray(own.weights[0])
        for index, weight in list(enumerate(found.network.weights))[1:]:
            one, two = (peer[f"{mode}_matrix_{number}_{index}"] for number in range(2))
            assert np.array_equal(one, two) == (mode != "brsf"), (
                f"{MODES[mode]}, layer {index + 1}: matrices of two steps"
            )
            if mode in ("usf", "brsf"):
                assert np.array_equal(np.sign(one), np.sign(weight).reshape(one.shape)), f"{MODES[mode]}: signs"
    for mode, other in ((one, two) for one in first for two in first if one < two):
        apart = np.linalg.norm(first[mode] - first[other]) / np.linalg.norm(first[mode])
        assert apart > 1e-2, f"{MODES[mode]} and {MODES[other]} have the same gradients"
    return errors


def measure(case: Case, rounds: int, python: str | None) -> list[dict[str, Any]]:
    """One row per mode, or one with the reason."""
    found = problem(case)
    peer = run_biotorch(found, rounds, python)
    if peer["reason"] is not None:
        return [{"case": case, "rule": None, "reason": peer["reason"]}]
    errors = compare(case, found, peer["arrays"])
    operands = jnp.asarray(found.inputs), jnp.asarray(found.targets)
    runs = {
        mode: partial(_finished, found.network, *operands, rule) for mode, rule in rules(found, peer["arrays"]).items()
    }
    seconds = _timing.cpu_seconds(runs, rounds=rounds)
    return [
        {
            "case": case,
            "rule": MODES[mode],
            "layer_differences": errors[mode],
            "milliseconds": _timing.interval([1e3 * value for value in seconds[mode]]),
            "biotorch_milliseconds": _timing.interval([1e3 * value for value in peer["seconds"][mode]]),
            "ratio": statistics.median(peer["seconds"][mode]) / statistics.median(seconds[mode]),
            "versions": peer["versions"],
            "reason": None,
        }
        for mode in MODES
    ]


def _finished(*arguments):
    return jax.block_until_ready(gradients(*arguments))


def _show(case: Case, rows: Sequence[Mapping[str, Any]]) -> None:
    print(
        f"\n{case.examples} examples {case.input_shape}, channels {case.channels}, hidden {case.hidden}, {case.dtype}"
    )
    print(f"{'median, low, high':8}{'ms':>26}{'ms of BioTorch':>24}{'ratio':>9}{'largest difference':>21}")
    for row in rows:
        if row["reason"] is not None:
            print(f"BioTorch: {row['reason']}")
            continue
        print(
            f"{row['rule']:12}{row['milliseconds']!s:>31}{row['biotorch_milliseconds']!s:>24}{row['ratio']:>9.3g}"
            f"{max(row['layer_differences']):>21.1e}",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases, print tables and, with ``--out``, write them."""
    parser = _timing.parser("rules", __doc__)
    parser.add_argument("--biotorch", metavar="PYTHON", help="interpreter that has biotorch 0.0.16")
    options = _timing.parse(parser, arguments)

    jax.config.update("jax_enable_x64", True)
    here = _timing.announced("jax", "jaxlib", "numpy")
    rows: list[dict[str, Any]] = []
    for case in CASES:
        found = measure(case, options.rounds, options.biotorch)
        _show(case, found)
        rows += found
    _timing.write(options.out, {"environment": here, "rounds": options.rounds, "rows": rows})
    return 0


if __name__ == "__main__":
    _timing.restart_pinned("benchmarks.rules")
    raise SystemExit(main())
