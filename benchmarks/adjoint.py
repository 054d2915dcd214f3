"""Gradients of the learned solver: every method of the library, automatic differentiation, and a loop in PyTorch.

Each candidate computes the training loss of a rollout and its gradient with respect to a shared preconditioner. The
rate is counted as that of plain steps, `10 N K² L` operations, whatever a method really does, and compared with a
product of two matrices of 1024 rows in the same rounds.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolve.solver import METHODS, choose_method, rollout, training_loss

from . import _timing
from ._timing import Interval, Target

CASES = ((256, 16, 16), (64, 64, 64), (16, 128, 1024), (16, 64, 4096))
"""Tasks, size and depth."""

STEPS_AS_WRITTEN = ("scan", "accumulate", "checkpoint")
BASELINE = "jax.grad of a scan"
TORCH = "torch autograd loop"
PRODUCT = 1024


def problem(tasks: int, size: int, depth: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Preconditioner, operators, right-hand sides, starts and solutions; nothing is symmetric, nothing converges."""
    random = np.random.default_rng(seed)
    operators = np.eye(size) + 0.4 * random.standard_normal((tasks, size, size)) / np.sqrt(size)
    preconditioner = min(0.4, 2 / depth) * (np.eye(size) + 0.4 * random.standard_normal((size, size)) / np.sqrt(size))
    solutions, initial = random.standard_normal((2, tasks, size))
    return preconditioner, operators, np.einsum("tij,tj->ti", operators, solutions), initial, solutions


def plain(preconditioner, operators, right_hand_sides, initial, *, depth):
    """The iteration as a user would write it."""

    def step(state, _):
        residual = right_hand_sides - jnp.einsum("tij,tj->ti", operators, state)
        return state + jnp.einsum("ij,tj->ti", preconditioner, residual), None

    return jax.lax.scan(step, initial, length=depth)[0]


def value_and_gradient(function: Callable[..., jax.Array]) -> Callable[..., tuple[jax.Array, jax.Array]]:
    """Training loss of a rollout and its gradient, as a compiled function of the five arrays."""

    def loss(preconditioner, operators, right_hand_sides, initial, solutions):
        return training_loss(function(preconditioner, operators, right_hand_sides, initial), solutions)

    return jax.jit(jax.value_and_grad(loss))


def candidates(depth: int) -> dict[str, Callable[..., Any]]:
    """The baseline first, then the library by method."""
    found = {BASELINE: value_and_gradient(partial(plain, depth=depth))}
    for method in METHODS:
        found[method] = value_and_gradient(partial(rollout, depth=depth, method=method))
    return found


def torch_loop(arrays: Sequence[np.ndarray], depth: int) -> Callable[[], tuple[Any, Any]]:
    """The same in PyTorch. Raises ``ImportError`` where it is not installed."""
    import torch

    torch.set_num_threads(1)
    preconditioner, operators, right_hand_sides, initial, solutions = map(torch.from_numpy, arrays)

    def run():
        matrix = preconditioner.clone().requires_grad_()
        state = initial
        for _ in range(depth):
            residual = right_hand_sides - torch.einsum("tij,tj->ti", operators, state)
            state = state + residual @ matrix.T
        loss = ((state - solutions) ** 2).mean() / 2
        loss.backward()
        return loss.detach(), matrix.grad

    return run


def check(tasks: int, size: int, depth: int, *, with_torch: bool = False) -> dict[str, float]:
    """Relative errors of the gradients against the baseline, on the same arrays.

    Raises
    ------
    AssertionError
        Where the iteration has converged, or where an error is above 1e-13; above 1e-11 for powers of matrices beyond
        depth 64.
    """
    arrays = problem(tasks, size, depth)
    arguments = tuple(map(jnp.asarray, arrays))
    found = {name: function(*arguments) for name, function in candidates(depth).items()}
    if with_torch:
        found[TORCH] = torch_loop(arrays, depth)()
    loss, reference = found.pop(BASELINE)
    start = np.mean((arrays[3] - arrays[4]) ** 2) / 2
    assert 1e-6 < float(loss) / start < 1, f"the loss fell from {start:.1e} to {float(loss):.1e}"
    errors = {}
    for name, (value, gradient) in found.items():
        errors[name] = float(np.linalg.norm(np.asarray(gradient) - reference) / np.linalg.norm(reference))
        method = choose_method(tasks, size, depth) if name == "auto" else name
        tolerance = 1e-13 if depth <= 64 or method in (*STEPS_AS_WRITTEN, TORCH) else 1e-11
        assert errors[name] <= tolerance, f"{name}: relative error {errors[name]:.1e}"
        assert abs(float(value) / float(loss) - 1) <= tolerance, f"{name}: loss {float(value)!r}, not {float(loss)!r}"
    return errors


def measure(case: tuple[int, int, int], rounds: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows and judged targets of one case."""
    tasks, size, depth = case
    arrays = problem(*case)
    arguments = tuple(map(jnp.asarray, arrays))
    runs, memory, reason = {}, {}, None
    try:
        runs[TORCH] = torch_loop(arrays, depth)
    except ImportError as error:
        reason = f"not installed: {error}"
    errors = check(*case, with_torch=reason is None)
    for name, function in candidates(depth).items():
        compiled = function.lower(*arguments).compile()
        memory[name] = compiled.memory_analysis().temp_size_in_bytes
        runs[name] = partial(_finished, compiled, *arguments)
    square = jnp.asarray(np.random.default_rng(1).standard_normal((PRODUCT, PRODUCT)))
    runs["gemm"] = partial(_finished, jax.jit(jnp.matmul), square, square)
    seconds = _timing.cpu_seconds(runs, rounds=rounds)
    gemm = [2 * PRODUCT**3 / value for value in seconds["gemm"]]

    rows = []
    for name in runs:
        rate = [10 * tasks * size**2 * depth / value for value in seconds[name]] if name != "gemm" else gemm
        rows.append(
            {
                "case": case,
                "candidate": name,
                "chosen": choose_method(*case) if name == "auto" else None,
                "milliseconds": _timing.interval([1e3 * value for value in seconds[name]]),
                "speed": _timing.ratio(seconds[BASELINE], seconds[name]) if name != "gemm" else None,
                "bytes": memory.get(name),
                "error": errors.get(name),
                "gigaflops": _timing.interval([value / 1e9 for value in rate]),
                "of_gemm": _timing.ratio(rate, gemm),
                "reason": None,
            }
        )
    if reason is not None:
        rows.append({"case": case, "candidate": TORCH, "reason": reason})
    return rows, _judged(case, seconds, memory, errors)


def _finished(function, *arguments):
    return jax.block_until_ready(function(*arguments))


def _judged(case, seconds, memory, errors):
    depth = case[2]
    speed = {name: _timing.ratio(seconds[BASELINE], values) for name, values in seconds.items()}

    def exactly(value):
        return Interval(value, value, value)

    found = [(Target("auto against automatic differentiation", 1.0), speed["auto"])]
    if TORCH in seconds:
        found.append((Target("auto against torch", 4.0), _timing.ratio(seconds[TORCH], seconds["auto"])))
    if depth >= 1024:
        found.append((Target("panels, with residuals of all depths, faster", 1.6), speed["panels"]))
    if depth == 4096:
        smaller = memory[BASELINE] / memory["checkpoint"]
        found += [
            (Target("checkpoint, memory smaller", 20.0), exactly(smaller)),
            (
                Target("checkpoint, time", 1.4, at_least=False),
                _timing.ratio(seconds["checkpoint"], seconds[BASELINE]),
            ),
            (Target("doubling, faster", 10.0), speed["doubling"]),
            (Target("doubling, relative error", 1e-11, at_least=False), exactly(errors["doubling"])),
        ]
    return [
        {
            "case": case,
            "target": target.name,
            "bound": target.bound,
            "at_least": target.at_least,
            "found": value,
            "verdict": _timing.verdict(target, value),
        }
        for target, value in found
    ]


def _show(rows, targets):
    print("\nN, K, L = {}, {}, {}".format(*rows[0]["case"]))
    print(f"{'median, low, high of':22}{'ms':>22}{'times faster':>22}{'MiB':>8}{'error':>9}{'GF/s':>20}{'of gemm':>22}")
    for row in rows:
        if row["reason"]:
            print(f"{row['candidate']:22}{row['reason']}")
            continue
        memory = "" if row["bytes"] is None else f"{row['bytes'] / 2**20:.2f}"
        error = "" if row["error"] is None else f"{row['error']:.0e}"
        name = f"{row['candidate']} ({row['chosen']})" if row["chosen"] else row["candidate"]
        print(
            f"{name:22}{row['milliseconds']!s:>22}{row['speed'] or ''!s:>22}{memory:>8}{error:>9}"
            f"{row['gigaflops']!s:>20}{row['of_gemm']!s:>22}"
        )
    for row in targets:
        sign = ">=" if row["at_least"] else "<="
        print(f"  {row['verdict']:10}{row['target']} {sign} {row['bound']:g}: {row['found']}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases, print tables and, with ``--out``, write them."""
    parser = _timing.parser("adjoint", __doc__)
    options = _timing.parse(parser, arguments)

    jax.config.update("jax_enable_x64", True)
    here = _timing.announced("jax", "jaxlib", "numpy", "torch")
    rows: list[dict[str, Any]] = []
    targets: list[dict[str, Any]] = []
    for case in CASES:
        found = measure(case, options.rounds)
        _show(*found)
        rows += found[0]
        targets += found[1]
    _timing.write(options.out, {"environment": here, "rounds": options.rounds, "rows": rows, "targets": targets})
    return 0


if __name__ == "__main__":
    _timing.restart_pinned("benchmarks.adjoint")
    raise SystemExit(main())
