"""Pinned, interleaved timing: CPU seconds in rounds, medians with their intervals, and what they say about a target."""

import argparse
import gc
import json
import math
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

LEVEL = 0.9
"""Least confidence of an interval."""

ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class Interval(NamedTuple):
    """A median and the interval around it."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return " ".join(f"{value:.4g}" if value >= 100 else f"{value:.3g}" for value in self)


class Target(NamedTuple):
    """A bound on a ratio: ``at_least`` or, if that is False, at most ``bound``."""

    name: str
    bound: float
    at_least: bool = True


def restart_pinned(module: str) -> None:
    """Start ``python -m module`` again on one core and with one thread, unless that has been done.

    Threads have to be limited before libraries are imported, so the process replaces itself. The core is the last of
    those allowed, which interrupts visit least.
    """
    if all(os.environ.get(name) == value for name, value in ONE_THREAD.items()):
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], {**os.environ, **ONE_THREAD})


def cpu_seconds(
    candidates: Mapping[str, Callable[[], Any]], *, rounds: int, least: float = 0.05
) -> dict[str, list[float]]:
    """CPU seconds per call of each candidate, one number per round.

    Parameters
    ----------
    candidates
        Functions that return when their work is done; each is called once beforehand.
    rounds
        Each round takes every candidate in turn, in an order of its own: what a neighbour leaves in the caches falls on
        all alike.
    least
        A candidate is called again within its turn until it has used this many CPU seconds.
    """
    names = list(candidates)
    for name in names:
        candidates[name]()
    seconds: dict[str, list[float]] = {name: [] for name in names}
    order = random.Random(0)
    gc.collect()
    for _ in range(rounds):
        for name in order.sample(names, len(names)):
            calls, start = 0, time.process_time()
            while not calls or time.process_time() - start < least:
                candidates[name]()
                calls += 1
            seconds[name].append((time.process_time() - start) / calls)
    return seconds


def interval(values: Sequence[float]) -> Interval:
    """The median with the narrowest pair of order statistics that holds the true one at least ``LEVEL`` of the time.

    No distribution is assumed. Fewer than five values cannot reach 0.9: then it is their range.

    >>> interval(range(1, 16))
    Interval(median=8, low=4, high=12)
    """
    ordered, count = sorted(values), len(values)
    outside, drop = 0.0, 0
    while True:
        outside += math.comb(count, drop) / 2**count
        if 1 - 2 * outside < LEVEL:
            break
        drop += 1
    keep = max(drop - 1, 0)
    return Interval(statistics.median(ordered), ordered[keep], ordered[-1 - keep])


def ratio(numerator: Sequence[float], denominator: Sequence[float]) -> Interval:
    """Interval of the ratios round by round.

    >>> ratio([4.0, 6.0, 5.0], [2.0, 2.0, 2.0])
    Interval(median=2.5, low=2.0, high=3.0)
    """
    return interval([above / below for above, below in zip(numerator, denominator, strict=True)])


def verdict(target: Target, found: Interval) -> str:
    """``"missed"`` where the whole interval lies beyond the target, ``"met"`` where its median does not, else
    ``"undecided"``.

    >>> [verdict(Target("speed", 2.0), Interval(*values)) for values in [(2.1, 1, 3), (1.9, 1, 3), (1.5, 1, 1.9)]]
    ['met', 'undecided', 'missed']
    """
    sign = 1 if target.at_least else -1
    best = found.high if target.at_least else found.low
    if sign * (best - target.bound) < 0:
        return "missed"
    return "met" if sign * (found.median - target.bound) >= 0 else "undecided"


def environment(*packages: str) -> dict[str, Any]:
    """Where this runs: machine, load, Python and the versions of the packages that are installed."""
    versions = {}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "pinned_to": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": versions,
    }


def announced(*packages: str) -> dict[str, Any]:
    """[`environment`][], which is also printed."""
    here = environment(*packages)
    print(f"{here['processor']}, core {here['pinned_to']} of {here['cores']}, load {here['load']}, {here['versions']}")
    return here


def parser(name: str, description: str | None, *, quick: str = "3 rounds instead of 15") -> argparse.ArgumentParser:
    """What every benchmark understands: ``--quick``, ``--rounds`` and ``--out``."""
    found = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    found.add_argument("--quick", action="store_true", help=quick)
    found.add_argument("--rounds", type=int, help="another number of rounds")
    found.add_argument("--out", type=Path, metavar="FILE.json", help="write the numbers there")
    return found


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, with the rounds that follow from them."""
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (3 if options.quick else 15)
    return options


def write(path: Path | None, results: Mapping[str, Any]) -> None:
    """The results as JSON, if there is a path; an interval is written as median, low, high."""
    if path is not None:
        path.write_text(json.dumps(results, indent=1, allow_nan=False) + "\n")


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
