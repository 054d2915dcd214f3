"""Draws of the initial erosion: chunks against one large batch, short forms and draws in law against backward passes.

Two hidden layers of width 64. A candidate is a compiled function of a key that gives as many draws as all others of its
case; the time is that of one draw. The forms that are compared with given feedback read it from memory, so that the
random numbers, which would hide them, are not counted; the others draw their own.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolve.feedback import (
    MLP,
    FeedbackAlignment,
    TwoLayerForm,
    erosion_draws,
    erosion_form,
    initial_erosion,
    weight_variances,
)

from . import _timing
from ._timing import Target

WIDTH = 64


class Case(NamedTuple):
    """Examples, inputs, outputs, and draws of each candidate."""

    examples: int
    features: int
    outputs: int
    draws: int


CASES = (Case(128, 16, 4, 1024), Case(256, 784, 10, 256))


class Problem(NamedTuple):
    """A network at its initialisation, with a residual of random labels, and feedback for every draw."""

    network: MLP
    inputs: jax.Array
    cotangent: jax.Array
    feedback: tuple[jax.Array, ...]


def problem(case: Case, seed: int = 0) -> Problem:
    """Weights of variance `2 / n_{l−1}`, in the last layer `1 / n_{L−1}`; feedback of the same variances."""
    random = np.random.default_rng(seed)
    widths = (case.features, WIDTH, WIDTH, case.outputs)
    variances = weight_variances(widths)
    shapes = list(zip(widths[1:], widths[:-1], strict=True))
    pairs = zip(shapes, variances, strict=True)
    network = MLP([variance**0.5 * random.standard_normal(shape) for shape, variance in pairs])
    inputs = jnp.asarray(random.standard_normal((case.examples, case.features)))
    targets = jnp.asarray(random.standard_normal((case.examples, case.outputs)))
    feedback = tuple(
        jnp.asarray(variance**0.5 * random.standard_normal((case.draws, *shape[::-1])))
        for shape, variance in zip(shapes[1:], variances[1:], strict=True)
    )
    return Problem(network, inputs, network(inputs) - targets, feedback)


def given(found: Problem) -> dict[str, Callable[[], jax.Array]]:
    """Candidates with given feedback: the erosion for every draw, in one compiled loop."""
    network, inputs, cotangent, feedback = found

    def backward(operands, matrices):
        rule = FeedbackAlignment(matrices)
        return initial_erosion(*operands, rule, throw=False).erosion

    def short(operands, matrices):
        return operands.sequential(matrices)

    operands = (network, inputs, cotangent)
    form = erosion_form(network, inputs, cotangent)
    draws = feedback[0].shape[0]
    return {
        "backward, all draws at once": _mapped(backward, operands, feedback, draws),
        "backward, chunks of 8": _mapped(backward, operands, feedback, 8),
        "fast, chunks of 8": _mapped(short, form, feedback, 8),
        "tensor, chunks of 64": _mapped(short, TwoLayerForm.of(form), feedback, 64),
    }


def _mapped(function, operands, feedback, block):
    @jax.jit
    def run(operands, feedback):
        return jax.lax.map(partial(function, operands), feedback, batch_size=block)

    return lambda: jax.block_until_ready(run(operands, feedback))


def drawn(case: Case, found: Problem) -> dict[str, Callable[[], jax.Array]]:
    """Candidates that draw: random numbers, the network, and nothing kept from one call to the next."""
    network, inputs, cotangent, _ = found
    key = jax.random.key(0)

    def run(method):
        count = case.draws if method == "backward" else 16 * case.draws
        return jax.block_until_ready(erosion_draws(network, inputs, cotangent, count=count, method=method, key=key))

    return {f"{method}, drawing": partial(run, method) for method in ("backward", "conditional")}


def check(case: Case) -> dict[str, float]:
    """Largest differences of the short forms from the backward pass, and what the draws in law are off by.

    Returns
    -------
    dict[str, float]
        By candidate: for given feedback the largest absolute difference, and for ``"conditional"`` the deviations of
        mean and variance from the exact moments in standard errors, and the p-value of a two-sample test.

    Raises
    ------
    AssertionError
        Where a difference is above 1e-13, a deviation above 4 standard errors, or the p-value below 1e-3.
    """
    found = problem(case)
    values = {name: np.asarray(run()) for name, run in given(found).items()}
    reference = values.pop("backward, all draws at once")
    assert np.ptp(reference) > 1e-3, "the erosion does not depend on the feedback"
    errors = {name: float(np.abs(value - reference).max()) for name, value in values.items()}
    for name, error in errors.items():
        assert error <= 1e-13, f"{name}: largest difference {error:.1e}"
    return errors | in_law(found, reference)


def in_law(found: Problem, reference: np.ndarray) -> dict[str, float]:
    """The conditional draws against the exact moments, and against draws by the backward pass."""
    from scipy.stats import ks_2samp

    network, inputs, cotangent, _ = found
    count = 4096
    values = np.asarray(erosion_draws(network, inputs, cotangent, count=count, key=jax.random.key(1)))
    form = erosion_form(network, inputs, cotangent)
    variance = float(form.sequential_variance(weight_variances(network.widths)[1:]))
    centred = values - float(form.hidden_share)
    deviations = {
        "mean": centred.mean() / np.sqrt(variance / count),
        "variance": ((centred**2).mean() - variance) / (np.std(centred**2) / np.sqrt(count)),
    }
    told = {f"conditional, {name} in standard errors": float(value) for name, value in deviations.items()}
    for name, value in told.items():
        assert abs(value) < 4, f"{name}: {value:.1f}"
    told["conditional, p-value"] = float(ks_2samp(values, reference).pvalue)
    assert told["conditional, p-value"] > 1e-3, f"another law: p-value {told['conditional, p-value']:.1e}"
    return told


def measure(case: Case, rounds: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows and judged targets of one case."""
    errors = check(case)
    found = problem(case)
    runs = given(found) | drawn(case, found)
    seconds = _timing.cpu_seconds(runs, rounds=rounds)
    seconds["conditional, drawing"] = [value / 16 for value in seconds["conditional, drawing"]]
    rows = [
        {
            "case": case,
            "candidate": name,
            "microseconds": _timing.interval([1e6 * value / case.draws for value in seconds[name]]),
            "error": errors.get(name),
        }
        for name in runs
    ]
    chunks, real = seconds["backward, chunks of 8"], seconds["backward, drawing"]
    fast = Target("fast form against backward", 5.0 if case.features > 100 else 2.0)
    pairs = [
        (Target("chunks against all draws at once", 1.7), seconds["backward, all draws at once"], chunks),
        (fast, chunks, seconds["fast, chunks of 8"]),
        (Target("draws in law against backward, both drawing", 12.0), real, seconds["conditional, drawing"]),
    ]
    targets = []
    for target, slower, faster in pairs:
        value = _timing.ratio(slower, faster)
        verdict = _timing.verdict(target, value)
        targets.append({"case": case, "target": target.name, "bound": target.bound, "found": value, "verdict": verdict})
    in_law = [{"case": case, "check": name, "found": value} for name, value in errors.items() if name not in runs]
    return [*rows, *in_law], targets


def _show(case: Case, rows, targets) -> None:
    print(f"\n{case.examples} examples, {case.features} inputs, {case.outputs} outputs, {case.draws} draws")
    print(f"{'microseconds a draw: median, low, high':40}{'':>22}{'largest difference':>20}")
    for row in rows:
        if "check" in row:
            print(f"  {row['check']}: {row['found']:.3g}")
            continue
        error = "" if row["error"] is None else f"{row['error']:.0e}"
        print(f"{row['candidate']:40}{row['microseconds']!s:>22}{error:>20}")
    for row in targets:
        print(f"  {row['verdict']:10}{row['target']} >= {row['bound']:g}: {row['found']}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases, print tables and, with ``--out``, write them."""
    parser = _timing.parser("erosion", __doc__)
    options = _timing.parse(parser, arguments)

    jax.config.update("jax_enable_x64", True)
    here = _timing.announced("jax", "jaxlib", "numpy")
    rows: list[dict[str, Any]] = []
    targets: list[dict[str, Any]] = []
    for case in CASES:
        found = measure(case, options.rounds)
        _show(case, *found)
        rows += found[0]
        targets += found[1]
    _timing.write(options.out, {"environment": here, "rounds": options.rounds, "rows": rows, "targets": targets})
    return 0


if __name__ == "__main__":
    _timing.restart_pinned("benchmarks.erosion")
    raise SystemExit(main())
