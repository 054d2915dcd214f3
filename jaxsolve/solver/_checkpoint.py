"""Step form in about √L segments: only their first states are kept, and each segment is run again on the way back."""

from math import isqrt
from typing import Any

import jax

from . import _accumulate
from ._systems import NOTHING, Systems


def forward(systems: Systems, depth: int, needed: Systems) -> tuple[Any, Any]:
    """The last state, and the state at the start of each segment."""
    del needed
    segments, steps, rest = _segments(depth)

    def segment(state, _):
        return _accumulate.forward(systems._replace(initial=state), steps, NOTHING)[0], state

    last_start, starts = jax.lax.scan(segment, systems.initial, length=segments)
    final, _ = _accumulate.forward(systems._replace(initial=last_start), rest, NOTHING)
    return final, (starts, last_start)


def backward(systems: Systems, saved: Any, cotangent: Any, depth: int, needed: Systems) -> Systems:
    """The cotangents that are needed, and None for the others."""
    _, steps, rest = _segments(depth)

    def pull_back(adjoint, start, steps):
        again = systems._replace(initial=start)
        _, kept = _accumulate.forward(again, steps, needed)
        return _accumulate.backward(again, kept, adjoint, steps, needed)

    def segment(totals, start):
        found = pull_back(totals.initial, start, steps)
        return jax.tree.map(lambda total, new: total + new, totals, found)._replace(initial=found.initial), None

    starts, last_start = saved
    totals, _ = jax.lax.scan(segment, pull_back(cotangent, last_start, rest), starts, reverse=True)
    return totals


def _segments(depth):
    steps = max(1, isqrt(depth))
    return depth // steps, steps, depth % steps
