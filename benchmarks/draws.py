"""Draws of the initial erosion under random feedback: vectorised all at once, in blocks, and by the engine.

The erosion of a network is `1 − ⟨g, g̃⟩ / ⟨g, g⟩`, with `g` the gradient and `g̃` what feedback alignment with random
matrices makes of it. Each draw is a real backward pass with new matrices. In the first part every candidate computes
mean and variance of the same 1024 draws; in the second the engine runs long enough for its calls, and is compared with
the bare blocks.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxsolve import Ensemble, monte_carlo
from jaxsolve.feedback import MLP, Backprop, FeedbackAlignment

from . import _timing
from ._timing import Interval, Target

WIDTHS, EXAMPLES, DRAWS = (16, 64, 64, 4), 128, 1024
LONG = 40_960
"""Draws of the long run: ten seconds or more."""
LONG_ROUNDS = 5
BLOCK = 8
VMAP, BLOCKS, ENGINE = "vmap over all draws", "lax.map in blocks of 8", "engine"


class Erosion(eqx.Module):
    """Draws of the initial erosion of one network, at fixed data."""

    network: MLP
    inputs: Float[Array, "examples features"]
    cotangent: Float[Array, "examples outputs"]

    def __call__(self, *, key) -> Float[Array, ""]:
        forward = self.network.forward(self.inputs)
        exact = Backprop().gradients(self.network, forward, self.cotangent).weights
        sent = FeedbackAlignment.sample(self.network, key=key).gradients(self.network, forward, self.cotangent).weights
        speed = sum(jnp.sum(one * other) for one, other in zip(exact, sent, strict=True))
        return 1 - jnp.asarray(speed / sum(jnp.sum(one**2) for one in exact))

    def hidden_share(self) -> float:
        """`1 − ‖g_L‖² / Σ_l ‖g_l‖²`: what the draws average to."""
        exact = Backprop().gradients(self.network, self.network.forward(self.inputs), self.cotangent).weights
        squares = [float(jnp.sum(one**2)) for one in exact]
        return 1 - squares[-1] / sum(squares)


def problem(widths: Sequence[int] = WIDTHS, examples: int = EXAMPLES) -> Erosion:
    """A rectifier network at its start, with Gaussian inputs and targets."""
    keys = jax.random.split(jax.random.key(0), 3)
    network = MLP.initialise(widths, key=keys[0])
    inputs = jax.random.normal(keys[1], (examples, widths[0]))
    targets = jax.random.normal(keys[2], (examples, widths[-1]))
    return Erosion(network, inputs, (network(inputs) - targets) / examples)


def _keys(count: int):
    return jax.vmap(lambda index: jax.random.fold_in(jax.random.key(1), index))(jnp.arange(count, dtype=jnp.uint32))


@partial(jax.jit, static_argnames="count")
def vectorised(erosion: Erosion, *, count: int) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of all draws, computed at once."""
    found = jax.vmap(lambda key: erosion(key=key))(_keys(count))
    return jnp.mean(found), jnp.var(found, ddof=1)


@partial(jax.jit, static_argnames="count")
def in_blocks(erosion: Erosion, *, count: int) -> tuple[jax.Array, jax.Array]:
    """The same, a block at a time."""
    found = jax.lax.map(lambda key: erosion(key=key), _keys(count), batch_size=BLOCK)
    return jnp.mean(found), jnp.var(found, ddof=1)


def by_engine(erosion: Erosion, *, count: int) -> Ensemble:
    """The same by the library."""
    return monte_carlo(erosion, jax.random.key(1), count, block=BLOCK)


def check(erosion: Erosion, count: int) -> dict[str, float]:
    """Relative errors of mean and variance against those of all draws at once.

    Raises
    ------
    AssertionError
        Where one is above 1e-12, where the mean is more than four standard errors from the hidden share, or where the
        draws do not spread.
    """
    mean, variance = (float(value) for value in vectorised(erosion, count=count))
    assert 1e-3 < variance**0.5 / mean < 10, f"the draws do not spread: mean {mean}, variance {variance}"
    error = (variance / count) ** 0.5
    z = (mean - erosion.hidden_share()) / error
    assert abs(z) < 4, f"the mean is {z:.1f} standard errors from the hidden share"
    engine = by_engine(erosion, count=count)
    errors = {}
    for name, found in {BLOCKS: in_blocks(erosion, count=count), ENGINE: (engine.mean, engine.variance)}.items():
        errors[name] = max(abs(float(found[0]) / mean - 1), abs(float(found[1]) / variance - 1))
        assert errors[name] <= 1e-12, f"{name}: relative error {errors[name]:.1e}"
    return errors


def measure(erosion: Erosion, rounds: int, long: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows and judged targets of both parts."""
    errors = check(erosion, DRAWS)
    compiled = {
        name: function.lower(erosion, count=DRAWS).compile()
        for name, function in {VMAP: vectorised, BLOCKS: in_blocks}.items()
    }
    memory = {name: _temporary_bytes(one) for name, one in compiled.items()}
    memory[ENGINE] = by_engine(erosion, count=DRAWS).device_bytes
    runs: dict[str, Callable] = {name: partial(_finished, one, erosion) for name, one in compiled.items()}
    runs[ENGINE] = partial(by_engine, erosion, count=DRAWS)
    short = _timing.cpu_seconds(runs, rounds=rounds)
    lasting = _timing.cpu_seconds(
        {
            BLOCKS: partial(_finished, partial(in_blocks, count=long), erosion),
            ENGINE: partial(by_engine, erosion, count=long),
        },
        rounds=min(rounds, LONG_ROUNDS),
    )
    rows = []
    for part, count, seconds, baseline in (("short", DRAWS, short, VMAP), ("long", long, lasting, BLOCKS)):
        rows += [
            {
                "part": part,
                "draws": count,
                "candidate": name,
                "seconds": _timing.interval(values),
                "microseconds_per_draw": _timing.interval([1e6 * value / count for value in values]),
                "speed": _timing.ratio(seconds[baseline], values),
                "bytes": memory[name] if part == "short" else None,
                "error": errors.get(name) if part == "short" else None,
            }
            for name, values in seconds.items()
        ]
    share = memory[ENGINE] / memory[VMAP]
    found = [
        (Target("engine against vmap, faster", 1.7), _timing.ratio(short[VMAP], short[ENGINE])),
        (Target("blocks against vmap, faster", 1.7), _timing.ratio(short[VMAP], short[BLOCKS])),
        (Target("engine, share of the memory of vmap", 0.1, at_least=False), Interval(share, share, share)),
        (
            Target("engine against bare blocks, long run, time", 1.05, at_least=False),
            _timing.ratio(lasting[ENGINE], lasting[BLOCKS]),
        ),
    ]
    return rows, [
        {
            "target": target.name,
            "bound": target.bound,
            "at_least": target.at_least,
            "found": value,
            "verdict": _timing.verdict(target, value),
        }
        for target, value in found
    ]


def _temporary_bytes(compiled) -> int:
    return compiled.memory_analysis().temp_size_in_bytes


def _finished(function, *arguments):
    return jax.block_until_ready(function(*arguments))


def _show(rows, targets):
    print(f"{'median, low, high of':26}{'seconds':>22}{'us per draw':>20}{'times faster':>20}{'MiB':>8}{'error':>9}")
    for row in rows:
        memory = "" if row["bytes"] is None else f"{row['bytes'] / 2**20:.2f}"
        error = "" if row["error"] is None else f"{row['error']:.0e}"
        print(
            f"{row['candidate']:26}{row['seconds']!s:>22}{row['microseconds_per_draw']!s:>20}{row['speed']!s:>20}"
            f"{memory:>8}{error:>9}  {row['draws']} draws"
        )
    for row in targets:
        sign = ">=" if row["at_least"] else "<="
        print(f"  {row['verdict']:10}{row['target']} {sign} {row['bound']:g}: {row['found']}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both parts, print a table and, with ``--out``, write it."""
    parser = _timing.parser("draws", __doc__, quick="3 options.rounds instead of 15, and a tenth of the long run")
    options = _timing.parse(parser, arguments)

    jax.config.update("jax_enable_x64", True)
    here = _timing.announced("jax", "jaxlib", "numpy")
    rows, targets = measure(problem(), options.rounds, LONG // 10 if options.quick else LONG)
    _show(rows, targets)
    _timing.write(options.out, {"environment": here, "rounds": options.rounds, "rows": rows, "targets": targets})
    return 0


if __name__ == "__main__":
    _timing.restart_pinned("benchmarks.draws")
    raise SystemExit(main())
