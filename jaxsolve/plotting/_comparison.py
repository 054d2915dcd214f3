"""Drawing the quantity that a verdict is about, with the level that it is held against."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..evidence import AbstractRule, BoundRule, Kind, LawRule, LimitRule, LocalRule, NullModelRule, Pair, PopulationRule
from ._data import (
    bound_violations,
    distribution,
    factors,
    local_errors,
    power_law,
    spans_decades,
    standardised_deviations,
)
from ._style import (
    FAINT,
    INK,
    LIMIT,
    MEASURED,
    SHOWN_MEMBERS,
    finish,
    first,
    grid_axis,
    markers,
    member_names,
    ordered_colours,
    shown_members,
)

COMPARED = frozenset({Kind.POPULATION, Kind.LAW, Kind.BOUND, Kind.LOCAL, Kind.LIMIT, Kind.NULL_MODEL})
"""Kinds whose comparison is a picture of its own. That of an identity or a transition is all there is to see."""


def draw_comparison(
    axis: Axes,
    pair: Pair,
    *,
    kind: Kind,
    grid: Any = None,
    grid_name: str = "grid",
    rule: AbstractRule | None = None,
    title: str = "",
) -> None:
    """Draw the quantity that the verdict is about, with the level that it is held against.

    =============  ===========================================================================================
    kind           what is drawn
    =============  ===========================================================================================
    population     deviations in standard errors, and the critical value
    law            empirical minus predicted probability, and the critical Kolmogorov–Smirnov distance
    bound          measured over bound, the worst at each grid point
    local          relative error, the declared level and horizon
    limit          error against size, with the fitted slope and the declared one
    null model     how far the reference model is off, and the declared factor
    =============  ===========================================================================================

    Parameters
    ----------
    axis, pair, kind, grid, grid_name, title
        As in [`draw_evidence`][].
    rule
        Rule of the theory, for the declared level; without it only the quantity is drawn.

    Raises
    ------
    ValueError
        For an identity or a transition, whose picture is that of [`draw_evidence`][].
    """
    if kind not in COMPARED:
        raise ValueError(
            f"The comparison of {kind.value} has no picture of its own; got an axis for one. Call draw_evidence."
        )
    if kind is Kind.LAW:
        _probability_differences(axis, pair, rule, member_names(pair, grid))
        finish(axis, title, "" if grid is None else grid_name, legend_columns=3)
        return
    _COMPARISONS[kind](axis, pair, rule)
    grid_axis(axis, pair, grid_name)
    finish(axis, title)


def _probability_differences(axis, pair, rule, names) -> None:
    data = distribution(pair, level=rule.level / 2) if isinstance(rule, LawRule) else distribution(pair)
    members = shown_members(data.values.shape[1])
    colours = dict(zip(members, ordered_colours(len(members)), strict=True))
    for member in sorted(range(data.values.shape[1]), key=lambda member: member in colours):
        expected = np.repeat(data.predicted[:, member], 2)
        steps = np.stack([data.below[:, member], data.upto[:, member]], axis=1).ravel()
        axis.plot(
            expected,
            steps - expected,
            color=colours.get(member, FAINT),
            linewidth=1.2 if member in colours else 0.5,
            label=names[member] if member in colours else "_nolegend_",
        )
    axis.axhspan(-data.critical, data.critical, color=LIMIT, alpha=0.08, linewidth=0)
    for edge in (-data.critical, data.critical):
        axis.axhline(edge, color=LIMIT, linestyle="--", label=first(edge > 0, f"critical distance {data.critical:.2g}"))
    axis.axhline(0, color=INK, linewidth=0.6)
    axis.set_xlabel("predicted probability")
    axis.set_ylabel("empirical − predicted\nprobability")
    axis.set_xlim(0, 1)
    largest = 1.9 * max(
        data.critical, np.abs(data.predicted - data.below).max(), np.abs(data.upto - data.predicted).max()
    )
    axis.set_ylim(-largest, largest)


def _deviations(axis, pair, rule) -> None:
    level = {"level": rule.level} if isinstance(rule, PopulationRule) else {}
    data = standardised_deviations(pair, **level)
    entries = data.deviation.shape[1]
    if np.isnan(data.deviation).all():
        axis.plot([], [], " ", label="one replicate has no standard error")
    elif entries <= SHOWN_MEMBERS:
        for entry, colour in enumerate([MEASURED] if entries == 1 else ordered_colours(entries)):
            label = "deviation" if entries == 1 else f"deviation, entry {entry + 1}"
            axis.plot(
                data.grid,
                data.deviation[:, entry],
                color=colour,
                linewidth=0.8,
                **markers(data.grid.size, True),
                label=label,
            )
    else:
        low, high = data.deviation.min(axis=1), data.deviation.max(axis=1)
        axis.fill_between(
            data.grid, low, high, color=MEASURED, alpha=0.25, linewidth=0, label=f"range of {entries} entries"
        )
        axis.plot(
            data.grid, np.stack([low, high], axis=1), color=MEASURED, linewidth=0.8, **markers(data.grid.size, True)
        )
    for edge in (-data.critical, data.critical):
        axis.axhline(edge, color=LIMIT, linestyle="--", label=first(edge > 0, f"critical value ± {data.critical:.3g}"))
    axis.axhline(0, color=INK, linewidth=0.6)
    axis.set_ylabel("deviation from the prediction\nin standard errors")
    axis.margins(y=0.25)


def _bound_ratios(axis, pair, rule) -> None:
    data = bound_violations(pair, rule=rule if isinstance(rule, BoundRule) else None)
    ratio = data.limit == 1
    finite = np.isfinite(data.worst)
    shown = np.where(finite & ~data.violated, data.worst, np.nan)
    axis.plot(
        data.grid,
        shown,
        color=MEASURED,
        linewidth=0.8,
        **markers(data.grid.size, True),
        label="largest over replicates",
    )
    top = max([data.limit, *data.worst[finite]])
    if data.violated.any():
        axis.plot(
            data.grid[data.violated],
            np.where(finite, data.worst, top)[data.violated],
            "X",
            color=LIMIT,
            markersize=8,
            label="violated",
        )
    if (vacuous := np.isneginf(data.worst)).any():
        axis.plot([], [], " ", label=f"{int(vacuous.sum())} bounds are infinite")
    axis.axhline(data.limit, color=LIMIT, linestyle="--", label="bound")
    if ratio and (data.worst[finite] > 0).all() and top >= 10 * data.worst[finite].min(initial=np.inf):
        axis.set_yscale("log")
    axis.margins(y=0.15)
    axis.set_ylabel("measured / bound" if ratio else "(measured − bound)\n/ largest bound")


def _local_errors(axis, pair, rule) -> None:
    error = local_errors(pair)
    grid = np.asarray(pair.measured.grid)
    axis.plot(grid, error, color=MEASURED, linewidth=1, **markers(grid.size, True), label="relative error")
    if (error[np.isfinite(error)] > 0).any():
        axis.set_yscale("log")
    if isinstance(rule, LocalRule):
        axis.axhline(rule.level, color=LIMIT, linestyle="--", label=f"declared level {rule.level:g}")
        axis.axvspan(
            grid.min(), rule.horizon, color=FAINT, alpha=0.15, linewidth=0, label=f"up to the horizon {rule.horizon:g}"
        )
    axis.set_ylabel("relative error")


def _power_law(axis, pair, rule) -> None:
    data = power_law(pair)
    size, (middle, height) = data.size, data.centre
    positive = data.error > 0
    axis.set_xscale("log")
    axis.set_yscale("log")
    spread = np.minimum(2 * data.spread, 0.95 * data.error)[positive] if np.isfinite(data.spread).all() else None
    label = "error" if spread is None else "error ± 2 standard errors"
    axis.errorbar(
        size[positive], data.error[positive], spread, fmt="o", color=MEASURED, markersize=5, capsize=3, label=label
    )
    ends = np.array([size.min(), size.max()])
    if np.isfinite(data.slope):
        axis.plot(ends, height * (ends / middle) ** data.slope, color=MEASURED, label=f"fitted slope {data.slope:.3f}")
        if isinstance(rule, LimitRule):
            declared = f"declared slope {rule.exponent:g} ± {rule.band:g}"
            axis.plot(ends, height * (ends / middle) ** rule.exponent, color=INK, linestyle="--", label=declared)
            x = np.geomspace(ends[0], ends[1], 40)
            edges = [height * (x / middle) ** (rule.exponent + sign * rule.band) for sign in (-1, 1)]
            axis.fill_between(x, *edges, color=INK, alpha=0.12, linewidth=0)
    if not positive.all():
        axis.plot([], [], " ", label=f"{int((~positive).sum())} errors are exactly zero")
    axis.set_ylabel("‖measured − predicted‖")


def _factors(axis, pair, rule) -> None:
    direction = rule.direction if isinstance(rule, NullModelRule) else "over"
    data = factors(pair, direction=direction)
    lowest = np.nanmin(data.ratio, axis=1, initial=np.inf)
    lowest = np.where(np.isfinite(lowest), lowest, np.nan)
    axis.plot(data.grid, lowest, color=MEASURED, linewidth=1, **markers(data.grid.size, True), label="factor")
    if np.isnan(data.ratio).any():
        axis.plot([], [], " ", label="a factor needs positive values")
    if isinstance(rule, NullModelRule):
        axis.axhline(rule.factor, color=LIMIT, linestyle="--", label=f"declared factor {rule.factor:g}")
    if spans_decades(lowest):
        axis.set_yscale("log")
    axis.axhline(1, color=FAINT, linestyle=":", label="no failure")
    axis.set_ylabel("reference model / measured" if direction == "over" else "measured / reference model")


_COMPARISONS: Mapping[Kind, Callable[[Axes, Pair, AbstractRule | None], None]] = {
    Kind.POPULATION: _deviations,
    Kind.BOUND: _bound_ratios,
    Kind.LOCAL: _local_errors,
    Kind.LIMIT: _power_law,
    Kind.NULL_MODEL: _factors,
}
