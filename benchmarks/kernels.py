"""Tangent kernels: tiles into one buffer against other ways to the same matrix, and products without a matrix.

All candidates compute the whole `(N n_L, N n_L)` kernel of a rectifier network without biases, in double precision. The
rate counts the operations of the layerwise identity over the full matrix, `Σ_l 2 (N n_L)² n_l + 2 N² n_{l−1}` over the
hidden layers and `2 N² n_{L−1}`, whatever a candidate really does, and is compared with a product of two matrices of
1024 rows in the same rounds. neural-tangents runs in a process and an environment of its own, named with
``--neural-tangents PYTHON``; its rate is divided by that of the same product there.
"""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxsolve import tangent
from jaxsolve.feedback import MLP, AbstractBackwardRule, Backprop, FeedbackAlignment

from . import _timing
from ._timing import Target

PRODUCT = 1024
BROADCAST, KERNEL = "broadcast", "jaxsolve"
NEURAL_TANGENTS = "neural-tangents structured"


class Case(NamedTuple):
    """Width and number of hidden layers, inputs, outputs, examples; and what the explicit Jacobian is held to."""

    width: int
    hidden: int
    inputs: int
    outputs: int
    examples: int
    over_jacobian: float | None = None

    @property
    def rows(self) -> int:
        """`N n_L`."""
        return self.examples * self.outputs

    @property
    def operations(self) -> int:
        """Of the layerwise identity."""
        grams = 2 * self.examples**2 * (self.inputs + self.hidden * self.width)
        return self.hidden * 2 * self.rows**2 * self.width + grams


CASES = (
    Case(64, 2, 16, 4, 128, over_jacobian=20),
    Case(64, 3, 16, 10, 128),
    Case(64, 2, 784, 10, 128),
    Case(64, 2, 16, 10, 512),
    Case(256, 2, 16, 4, 128, over_jacobian=80),
    Case(256, 3, 784, 10, 128),
    Case(256, 2, 784, 4, 512),
    Case(1024, 2, 16, 4, 128),
    Case(64, 2, 16, 10, 128, over_jacobian=28),
    Case(64, 3, 16, 10, 256),
    Case(64, 2, 16, 4, 1024),
    Case(256, 2, 16, 4, 512),
)
"""The first eight are the cases that neural-tangents runs as well."""

SHARED = 8
PRODUCTS = ((64, 128), (256, 128), (1024, 128))
"""Widths and examples of the products without a matrix."""


def problem(case: Case) -> tuple[MLP, jax.Array, FeedbackAlignment]:
    """Network, inputs and feedback matrices."""
    widths = (case.inputs, *case.hidden * (case.width,), case.outputs)
    network = MLP.initialise(widths, key=jax.random.key(0))
    inputs = jnp.asarray(np.random.default_rng(0).standard_normal((case.examples, case.inputs)))
    return network, inputs, FeedbackAlignment.sample(network, key=jax.random.key(1))


@eqx.filter_jit
def broadcast(network: MLP, inputs: jax.Array, rule: AbstractBackwardRule) -> jax.Array:
    """The layerwise identity as it is written, one whole matrix per layer."""
    forward = network.forward(inputs)
    examples, outputs = forward.outputs.shape
    one_hot = jnp.eye(outputs)[None]
    exact, other = (way.deltas(network, forward, one_hot) for way in (Backprop(), rule))
    total = _gram(forward.activations[-1])[:, None, :, None] * jnp.eye(outputs)[None, :, None, :]
    for layer in range(network.depth):
        left, right = (deltas[layer].reshape(examples * outputs, -1) for deltas in (exact, other))
        errors = (left @ right.T).reshape(examples, outputs, examples, outputs)
        total = total + _gram(forward.activations[layer])[:, None, :, None] * errors
    return total.reshape(examples * outputs, -1)


def _gram(hidden):
    return hidden @ hidden.T


@jax.jit
def jacobian_product(network: MLP, inputs: jax.Array) -> jax.Array:
    """`J J^T` from the explicit Jacobian, one example at a time."""
    one = jax.jacrev(lambda network, example: network(example[None])[0])
    leaves = jax.tree.leaves(jax.vmap(one, (None, 0))(network, inputs))
    rows = jnp.concatenate([leaf.reshape(leaf.shape[0] * leaf.shape[1], -1) for leaf in leaves], axis=1)
    return rows @ rows.T


def torch_candidates(network: MLP, inputs: jax.Array, *, jacobian: bool) -> dict[str, Callable[[], np.ndarray]]:
    """NNGeometry's Gram matrix and, where asked for, torch.func's Jacobian. Raises ``ImportError`` without them."""
    import torch
    from nngeometry import GramMatrix
    from nngeometry.layercollection import LayerCollection
    from nngeometry.object import FMatDense

    torch.set_num_threads(1)
    layers = []
    for weight in network.weights:
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=torch.float64)
        layer.weight.data = torch.from_numpy(np.array(weight))
        layers += [layer, torch.nn.ReLU()]
    model, data = torch.nn.Sequential(*layers[:-1]), torch.from_numpy(np.array(inputs))
    outputs = network.widths[-1]
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(data, torch.zeros(len(data))), batch_size=len(data)
    )

    def by_nngeometry():
        found = GramMatrix(model, loader, representation=FMatDense, layer_collection=LayerCollection.from_model(model))
        return found.to_torch().permute(1, 0, 3, 2).reshape(len(data) * outputs, -1).detach()

    def by_jacobian():
        parameters = {name: value.detach() for name, value in model.named_parameters()}
        one = torch.func.jacrev(lambda parameters, x: torch.func.functional_call(model, parameters, (x,)))
        found = torch.func.vmap(one, (None, 0))(parameters, data)
        rows = torch.cat([leaf.reshape(len(data) * outputs, -1) for leaf in found.values()], dim=1)
        return rows @ rows.T

    found: dict[str, Callable[[], Any]] = {"NNGeometry": by_nngeometry}
    if jacobian:
        found["torch.func J J^T"] = by_jacobian
    return found


def check(case: Case) -> tuple[dict[str, Callable[[], Any]], str | None]:
    """Candidates that have been found to agree, and why some are missing.

    Raises
    ------
    AssertionError
        Where one differs from the broadcast form by more than 1e-12 of the largest entry.
    """
    network, inputs, feedback = problem(case)
    rules = {"backprop": Backprop(), "feedback": feedback}
    found: dict[str, Callable[[], Any]] = {}
    for name, rule in rules.items():
        found[f"{BROADCAST}, {name}"] = partial(_finished, broadcast, network, inputs, rule)
        found[f"{KERNEL}, {name}"] = _reusing(network, inputs, rule)
        found[f"{KERNEL}, {name}, new memory"] = partial(_finished, tangent.kernel, network, inputs, rule)
    if case.over_jacobian:
        found["J J^T"] = partial(_finished, jacobian_product, network, inputs)
    reason = None
    try:
        found |= torch_candidates(network, inputs, jacobian=bool(case.over_jacobian))
    except ImportError as error:
        reason = f"not installed: {error}"
    references = {name: np.asarray(found[f"{BROADCAST}, {name}"]()) for name in rules}
    assert np.linalg.norm(references["feedback"] - references["feedback"].T) > 1e-3 * np.linalg.norm(
        references["feedback"]
    )
    for name, function in found.items():
        reference = references["feedback" if "feedback" in name else "backprop"]
        error = np.abs(np.asarray(function()) - reference).max() / np.abs(reference).max()
        assert error <= 1e-12, f"{name} is off by {error:.1e}"
    return found, reason


def _finished(function, *arguments):
    return jax.block_until_ready(function(*arguments))


def _reusing(network, inputs, rule):
    """A kernel into the memory of the one before."""
    rows = len(inputs) * network.widths[-1]
    memory = [jnp.zeros((rows, rows))]

    def run():
        memory[0] = tangent.kernel(network, inputs, rule, out=memory[0])
        return memory[0].block_until_ready()

    return run


def measure(case: Case, rounds: int, neural_tangents: str | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows and judged targets of one case."""
    runs, reason = check(case)
    square = jnp.asarray(np.random.default_rng(1).standard_normal((PRODUCT, PRODUCT)))
    runs["gemm"] = partial(_finished, jax.jit(jnp.matmul), square, square)
    seconds = _timing.cpu_seconds(runs, rounds=rounds)
    rate = {name: [case.operations / value for value in values] for name, values in seconds.items()}
    rate["gemm"] = [2 * PRODUCT**3 / value for value in seconds["gemm"]]
    rows = [
        {
            "case": case[:5],
            "candidate": name,
            "milliseconds": _timing.interval([1e3 * value for value in seconds[name]]),
            "of_gemm": _timing.ratio(rate[name], rate["gemm"]),
            "reason": None,
        }
        for name in runs
    ]
    if reason is not None:
        rows.append({"case": case[:5], "candidate": "NNGeometry, torch.func", "reason": reason})
    other = None
    if case in CASES[:SHARED]:
        other = run_neural_tangents(case, rounds, neural_tangents)
        rows.append({"case": case[:5], "candidate": NEURAL_TANGENTS, **other})
    return rows, _judged(case, seconds, rate, other)


def run_neural_tangents(case: Case, rounds: int, python: str | None) -> dict[str, Any]:
    """Times of neural-tangents in its own environment, divided by those of the same product there."""
    if python is None:
        return {"reason": "no environment was named"}
    script = Path(__file__).with_name("_neural_tangents.py")
    command = [python, str(script), *map(str, (*case[:5], rounds, PRODUCT))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": ""})
    if done.returncode:
        return {"reason": (done.stderr.strip().splitlines() or ["failed"])[-1]}
    found = json.loads(done.stdout.splitlines()[-1])
    share = [case.operations / one / (2 * PRODUCT**3 / product) for one, product in zip(*found["seconds"], strict=True)]
    error = _difference(case, found["probe"])
    assert error <= 1e-10, f"neural-tangents is off by {error:.1e}"
    return {
        "milliseconds": _timing.interval([1e3 * value for value in found["seconds"][0]]),
        "of_gemm": _timing.interval(share),
        "shares": share,
        "versions": found["versions"],
        "reason": None,
    }


def _difference(case, probe):
    """Relative difference of `K v` for a fixed vector `v`: other numbers cannot be compared across processes."""
    network, inputs, _ = problem(case)
    expected = np.asarray(tangent.kernel(network, inputs)) @ np.cos(np.arange(case.rows))
    return np.linalg.norm(np.asarray(probe) - expected) / np.linalg.norm(expected)


def _judged(case, seconds, rate, other):
    kernels = {name: f"{KERNEL}, {name}" for name in ("backprop", "feedback")}
    found = []

    def against(peer, name, bound, words):
        if peer in seconds:
            found.append((Target(words, bound), _timing.ratio(seconds[peer], seconds[kernels[name]])))

    if case.rows >= 2560 and case.width == 64:
        against(f"{BROADCAST}, backprop", "backprop", 2.0, "backprop over the broadcast form")
        against(f"{BROADCAST}, feedback", "feedback", 1.6, "feedback over the broadcast form")
    if case.over_jacobian:
        against("J J^T", "backprop", case.over_jacobian, "backprop over J J^T")
    against("NNGeometry", "backprop", 1.6, "backprop over NNGeometry")
    if case.rows >= 2048 and case.width <= 256:
        for name, bound in (("backprop", 0.75), ("feedback", 0.5)):
            found.append((Target(f"{name}, share of gemm", bound), _timing.ratio(rate[kernels[name]], rate["gemm"])))
    if other is not None and other["reason"] is None:
        own = [one / product for one, product in zip(rate[kernels["backprop"]], rate["gemm"], strict=True)]
        pairs = _timing.ratio(sorted(own)[: len(other["shares"])], sorted(other["shares"])[: len(own)])
        found.append((Target("backprop over neural-tangents, both as shares of gemm", 1.0), pairs))
    return [_row(case[:5], target, value) for target, value in found]


def measure_products(width: int, examples: int, rounds: int, steps: int = 20) -> list[dict[str, Any]]:
    """A recursion of residuals with one linearisation, against a compiled product that is called at every step.

    Where the steps of the latter stand in one compiled loop as well, the compiler moves the linearisation out of it by
    itself; that is measured, and held to no target.
    """
    case = Case(width, 2, 16, 4, examples)
    network, inputs, _ = problem(case)
    start = jnp.asarray(np.random.default_rng(2).standard_normal(case.rows))
    scale = 0.1 / float(jnp.linalg.norm(tangent.kernel(network, inputs), 2))

    @jax.jit
    def once(network, start):
        operator = tangent.operator(network, inputs)
        return jax.lax.scan(lambda r, _: (r - scale * operator.mv(r), None), start, length=steps)[0]

    @jax.jit
    def step(network, r):
        outputs, pull_back = jax.vjp(lambda network: network(inputs), network)
        (direction,) = pull_back(r.reshape(outputs.shape))
        return r - scale * jax.jvp(lambda network: network(inputs), (network,), (direction,))[1].ravel()

    def anew():
        residual = start
        for _ in range(steps):
            residual = step(network, residual)
        return residual.block_until_ready()

    @jax.jit
    def in_a_loop(network, start):
        return jax.lax.scan(lambda r, _: (step(network, r), None), start, length=steps)[0]

    runs = {
        "once": partial(_finished, once, network, start),
        "anew": anew,
        "loop": partial(_finished, in_a_loop, network, start),
    }
    reference = np.asarray(runs["anew"]())
    for name, run in runs.items():
        difference = np.abs(np.asarray(run()) - reference).max()
        assert difference <= 1e-12 * np.abs(np.asarray(start)).max(), f"{name} differs by {difference:.1e}"
    seconds = _timing.cpu_seconds(runs, rounds=rounds)
    target = Target("one linearisation over a new one at every step", 2.0 if width == 64 else 1.1)
    loop = Target("the same over a loop that the compiler improves", 0.0)
    return [
        _row(case[:5], target, _timing.ratio(seconds["anew"], seconds["once"])),
        _row(case[:5], loop, _timing.ratio(seconds["loop"], seconds["once"])),
    ]


def _row(case, target, value):
    return {
        "case": case,
        "target": target.name,
        "bound": target.bound,
        "at_least": target.at_least,
        "found": value,
        "verdict": _timing.verdict(target, value),
    }


def _show(rows: Sequence[Mapping[str, Any]], targets: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        print("\nwidth {}, {} hidden, {} inputs, {} outputs, N = {}".format(*rows[0]["case"]))
        print(f"{'median, low, high of':34}{'ms':>22}{'of gemm':>24}")
    for row in rows:
        if row["reason"]:
            print(f"{row['candidate']:34}{row['reason']}")
        else:
            print(f"{row['candidate']:34}{row['milliseconds']!s:>22}{row['of_gemm']!s:>24}")
    for row in targets:
        print(f"  {row['verdict']:10}{row['target']} >= {row['bound']:g}: {row['found']}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases, print tables and, with ``--out``, write them."""
    parser = _timing.parser("kernels", __doc__)
    parser.add_argument("--neural-tangents", metavar="PYTHON", help="interpreter that has neural-tangents 0.6.5")
    options = _timing.parse(parser, arguments)

    jax.config.update("jax_enable_x64", True)
    here = _timing.announced("jax", "jaxlib", "numpy", "torch", "nngeometry")
    rows: list[dict[str, Any]] = []
    targets: list[dict[str, Any]] = []
    for case in CASES:
        found = measure(case, options.rounds, options.neural_tangents)
        _show(*found)
        rows += found[0]
        targets += found[1]
    print("\nproducts without a matrix")
    for width, examples in PRODUCTS:
        judged = measure_products(width, examples, options.rounds)
        _show([], judged)
        targets += judged
    _timing.write(options.out, {"environment": here, "rounds": options.rounds, "rows": rows, "targets": targets})
    return 0


if __name__ == "__main__":
    _timing.restart_pinned("benchmarks.kernels")
    raise SystemExit(main())
