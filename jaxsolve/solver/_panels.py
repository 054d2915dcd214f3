"""Matrix form: one product with a matrix per step or, in panels of several rows, one per several steps.

A panel holds the residuals of `width` successive steps as rows, and `C^width` carries it to the next one; the adjoints
run back in the same way with `M^width` (see `_powers`). The way forward needs only the first row of each panel, because

    Σ_{k<width} r_kᵀ = r_0ᵀ (I + C) (I + C²) (I + C⁴) ⋯.

Panels are grouped in chunks. `C^width` and the first panel of each chunk are kept; on the way back the others are
formed again, and one product per chunk collects

    grad_P = Σ λ_{l+1} r_lᵀ,   W = Σ λ_{l+1} s_lᵀ,   y = Σ λ_{l+1},   s_l = Σ_{k<l} r_k.

Since `z_l = z_0 + P s_l`, the others are `grad_b = Pᵀ y`, `grad_H = −Pᵀ (y z_0ᵀ + W Pᵀ)` and `grad_{z_0} = λ_0`. The
steps that do not fill a panel come first, one by one. Their rows are kept, as are single steps that fit one chunk.
"""

from functools import partial
from math import isqrt
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ._blocks import Method
from ._powers import advance, error_matrices, powers, residual_matrices, spread, sum_of_powers, sums_before
from ._systems import Systems, axes, operator_cotangents, precondition, precondition_transposed, product, residuals

CHUNK = 128
"""Steps of a chunk, or more where the panels kept for so many chunks would outgrow one chunk."""


class _Run(NamedTuple):
    """Successive chunks of equal shape, and whether their rows are kept."""

    width: int
    chunks: int
    panels: int
    keep: bool


class _Rows(NamedTuple):
    """`r_l` and `s_l` of a chunk, with axes panels, tasks, rows, size; None where no cotangent needs them."""

    residuals: Any
    sums: Any


class _Totals(NamedTuple):
    """What the way back has collected: `grad_P`, `W`, `y`, and the adjoints of the last panel as rows."""

    preconditioner: Any
    products: Any
    adjoints: Any
    panel: Any


def panels(width: int) -> Method:
    """The method with panels of `width` rows, a power of two."""
    return Method(partial(_forward, width), partial(_backward, width))


def _forward(width, systems, depth, needed):
    ladder = powers(residual_matrices(systems), width)
    state, saved = (residuals(systems, systems.initial), jnp.zeros_like(systems.initial)), []
    rows_needed = needed.preconditioner or needed.operators
    for run in _runs(depth, width):

        def chunk(state, _, run=run):
            if not run.keep:
                return _passed(run, ladder, state), (spread(state[0], ladder), state[1]) if rows_needed else None
            (rows, total), kept = _formed(run, ladder[0], needed, (state[0][:, None], state[1]))
            return (rows[:, 0], total), kept

        state, kept = jax.lax.scan(chunk, state, length=run.chunks)
        saved.append(kept)
    final = systems.initial + precondition(systems.preconditioner, state[1])
    return final, (saved, ladder[-1] if rows_needed else None)


def _passed(run, ladder, state):
    """The residual behind a chunk, and the sum of all before it."""

    def step(state, _):
        residual, heads = state
        return (advance(residual, ladder[-1]), heads + residual), None

    residual, total = state
    (residual, heads), _ = jax.lax.scan(step, (residual, jnp.zeros_like(residual)), length=run.panels)
    return residual, total + sum_of_powers(heads, ladder)


def _formed(run, matrices, needed, state):
    """The panel behind a chunk, the sum of all residuals before it, and the rows of the chunk."""

    def step(state, _):
        panel, before = state
        sums = before[:, None, :] + sums_before(panel) if needed.operators else None
        kept = _Rows(panel if needed.preconditioner else None, sums)
        return (advance(panel, matrices), before + panel.sum(axis=1)), kept

    return jax.lax.scan(step, state, length=run.panels)


def _backward(width, systems, saved, cotangent, depth, needed):
    saved, matrices = saved
    back = powers(error_matrices(systems), width)
    totals = _Totals(
        preconditioner=jnp.zeros_like(systems.preconditioner) if needed.preconditioner else None,
        products=jnp.zeros_like(systems.operators) if needed.operators else None,
        adjoints=jnp.zeros_like(cotangent) if needed.operators or needed.right_hand_sides else None,
        panel=spread(cotangent, back, newest_first=True),
    )
    for run, kept in reversed(list(zip(_runs(depth, width), saved, strict=True))):

        def chunk(totals, kept, run=run):
            rows = kept if run.keep or kept is None else _formed(run, matrices, needed, kept)[1]
            return _collected(run, back, totals, rows), None

        start = totals._replace(panel=totals.panel[:, -run.width :])
        totals, _ = jax.lax.scan(chunk, start, kept, length=run.chunks, reverse=True)

    operators = right_hand_sides = None
    if needed.operators:
        operators = operator_cotangents(systems, totals.adjoints, totals.products)
    if needed.right_hand_sides:
        right_hand_sides = precondition_transposed(systems.preconditioner, totals.adjoints)
    return Systems(totals.preconditioner, operators, right_hand_sides, totals.panel[:, -1])


def _collected(run, ladder, totals, rows):
    def step(panel, _):
        return advance(panel, ladder[run.width.bit_length() - 1]), panel

    panel, adjoints = jax.lax.scan(step, totals.panel, length=run.panels, reverse=True)
    totals = totals._replace(panel=panel)
    if totals.preconditioner is not None:
        change = product(f"qtmi,qtmj->{axes(totals.preconditioner)}", adjoints, rows.residuals)
        totals = totals._replace(preconditioner=totals.preconditioner + change)
    if totals.products is not None:
        totals = totals._replace(products=totals.products + product("qtmi,qtmj->tij", adjoints, rows.sums))
    if totals.adjoints is not None:
        totals = totals._replace(adjoints=totals.adjoints + adjoints.sum(axis=(0, 2)))
    return totals


def _runs(depth, width):
    count, rest = divmod(depth, width)
    panels = max(CHUNK // width, isqrt(count))
    keep = width == 1 and count <= panels
    runs = (
        _Run(1, 1, rest, True),
        _Run(width, 1, count % panels, keep),
        _Run(width, count // panels, panels, keep),
    )
    return [run for run in runs if run.chunks * run.panels]
