"""Drawing what was predicted and what was measured, on one axis."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from .._numerics import machine_epsilon
from ..evidence import AbstractRule, IdentityRule, Kind, LocalRule, Pair
from ._data import curve_band, distribution, relative_differences, spans_decades
from ._style import (
    FAINT,
    INK,
    LIMIT,
    MEASURED,
    QUOTED,
    finish,
    first,
    grid_axis,
    markers,
    member_names,
    ordered_colours,
    shown_members,
)

_PREDICTED = {Kind.BOUND: "bound", Kind.NULL_MODEL: "reference model"}

_STAR: dict[str, Any] = {
    "marker": "*",
    "markersize": 12,
    "color": QUOTED,
    "markeredgecolor": INK,
    "markeredgewidth": 0.6,
    "linestyle": "none",
    "zorder": 5,
}


class Mark(NamedTuple):
    """A number as printed in the source: at a grid value, or at all of them where that is ``None``."""

    at: float | None
    number: float
    label: str = "printed"


def draw_evidence(
    axis: Axes,
    pair: Pair,
    *,
    kind: Kind,
    grid: Any = None,
    grid_name: str = "grid",
    value_name: str = "value",
    rule: AbstractRule | None = None,
    resolution: float | None = None,
    title: str = "",
    quoted: Sequence[Mark | tuple[float | None, float, str]] = (),
) -> None:
    """Draw what was predicted and what was measured.

    An identity is drawn as its relative difference with the allowed level, a law as distribution functions, a
    transition as brackets and locations, everything else as a predicted line and a measured one with its band.

    Parameters
    ----------
    axis
        Where to draw.
    pair
        Prediction and measurement.
    kind
        Kind of the statement.
    grid
        Grid of the theory; names the members of a law. A curve has its own.
    grid_name, value_name
        What the grid and the observable are called on the axes.
    rule
        Rule of the theory: adds its horizon, its scale or its allowance. Optional.
    resolution
        Resolution of the verdict: the allowed level of an identity where there is no ``rule``.
    title
        Title of the axis; put the verdict here.
    quoted
        Printed numbers to mark: ``(grid value or None, number, label)``. An identity shows none. For a law the
        number is a value of the sample, marked on the predicted distribution function.
    """
    marks = [Mark(*mark) for mark in quoted]
    axis.set_ylabel(value_name)
    if kind is Kind.IDENTITY:
        _identity(axis, pair, rule, resolution, value_name)
    elif kind is Kind.LAW:
        axis.set_xlabel(value_name)
        axis.set_ylabel("probability of a smaller value")
        _distribution_functions(axis, pair, member_names(pair, grid), marks, grid)
    else:
        if kind is Kind.TRANSITION:
            _brackets(axis, pair)
        else:
            _curve(axis, pair, predicted=_PREDICTED.get(kind, "predicted"))
        if isinstance(rule, LocalRule):
            axis.axvline(rule.horizon, color=FAINT, linestyle=":", label="declared horizon")
        _quoted(axis, marks)
    if kind is not Kind.LAW:
        grid_axis(axis, pair, grid_name)
    finish(axis, title, f"measured, {grid_name}" if kind is Kind.LAW and grid is not None else "")


def _identity(axis, pair, rule, resolution, value_name) -> None:
    relative_to, allowed = "point", resolution
    epsilon = machine_epsilon(pair.predicted.value.dtype)
    if isinstance(rule, IdentityRule):
        relative_to, allowed = rule.relative_to, rule.constant * epsilon
    grid, difference = np.asarray(pair.predicted.grid), relative_differences(pair, relative_to=relative_to)
    floor = epsilon / 16
    positive, exact = difference > 0, difference == 0
    axis.set_yscale("log")
    shown = np.where(positive, difference, np.where(exact, floor, np.nan))
    axis.plot(grid, shown, color=MEASURED, linewidth=0.8, alpha=0.5)
    axis.plot(grid[positive], difference[positive], "o", color=MEASURED, markersize=4, label="relative difference")
    if exact.any():
        axis.plot(
            grid[exact],
            shown[exact],
            "v",
            color=MEASURED,
            markerfacecolor="none",
            markersize=5,
            label="exactly zero, drawn at the floor",
        )
    if not np.isfinite(difference).all():
        axis.plot([], [], " ", label=f"{int((~np.isfinite(difference)).sum())} of {grid.size} not finite")
    if allowed:
        axis.axhline(allowed, color=LIMIT, linestyle="--", label=f"allowed, {allowed / epsilon:.4g} machine epsilons")
    top = max([allowed or epsilon, *difference[np.isfinite(difference)]])
    axis.set_ylim(floor / 2, 8 * top)
    axis.set_ylabel(f"relative difference of\n{value_name}")


def _curve(axis, pair, *, predicted: str) -> None:
    data = curve_band(pair)
    count = data.predicted.shape[1]
    mean = f", mean of {data.entries} entries" if data.entries > 1 else ""
    colours = [MEASURED] if count == 1 else ordered_colours(count)
    for line, colour in enumerate(colours):
        expected = np.where(np.isfinite(data.predicted[:, line]), data.predicted[:, line], np.nan)
        low, high = data.low[:, line], data.high[:, line]
        if data.band:
            axis.fill_between(data.grid, low, high, color=colour, alpha=0.22, linewidth=0, label=first(line, data.band))
        axis.plot(
            data.grid,
            data.measured[:, line],
            color=colour,
            linewidth=1.2,
            **markers(data.grid.size),
            label=f"measured{mean}" if count == 1 else f"measured, entry {line + 1}",
        )
        axis.plot(
            data.grid,
            expected,
            color=INK,
            linestyle="--",
            linewidth=1.4,
            **({"marker": "_", "markersize": 12} if data.grid.size == 1 else {}),
            label=first(line, f"{predicted}{mean}"),
        )
    if spans_decades(np.concatenate([data.predicted, data.measured])):
        axis.set_yscale("log")


def _brackets(axis, pair) -> None:
    grid = np.asarray(pair.predicted.grid)
    bracket, location = np.asarray(pair.predicted.value), np.asarray(pair.measured.value)
    low, high = bracket.reshape(grid.size, -1, 2).min(axis=1)[:, 0], bracket.reshape(grid.size, -1, 2).max(axis=1)[:, 1]
    axis.vlines(grid, low, high, color=FAINT, linewidth=7, alpha=0.6, label="predicted bracket")
    spread = pair.measured.standard_error
    spread = None if spread is None or location.ndim > 1 else 2 * np.asarray(spread)
    flat = location.reshape(grid.size, -1)
    axis.errorbar(
        np.repeat(grid, flat.shape[1]),
        flat.ravel(),
        spread,
        fmt="o",
        color=MEASURED,
        markersize=5,
        capsize=3,
        label="measured location" + ("" if spread is None else " ± 2 standard errors"),
    )


def _distribution_functions(axis, pair, names, marks, grid) -> None:
    data = distribution(pair)
    members = shown_members(data.values.shape[1])
    for member, colour in zip(members, ordered_colours(len(members)), strict=True):
        axis.step(
            data.values[:, member],
            data.upto[:, member],
            where="post",
            color=colour,
            linewidth=3,
            alpha=0.55,
            label=names[member],
        )
    for member in members:
        axis.plot(
            data.values[:, member], data.predicted[:, member], color=INK, linestyle="--", linewidth=1, label="predicted"
        )
    if spans_decades(data.values[:, members][2:-2]):
        axis.set_xscale("log")
        axis.set_xlim(left=np.quantile(data.values[:, members], 0.01, axis=0).min())
    if len(members) < data.values.shape[1]:
        axis.plot([], [], " ", label=f"{len(members)} of {data.values.shape[1]} members shown")
    for mark in marks:
        member = _member_at(grid, mark.at)
        if member is None:
            axis.axvline(mark.number, color=QUOTED, linestyle="-.", label=mark.label)
        else:
            height = np.interp(mark.number, data.values[:, member], data.predicted[:, member])
            axis.plot(mark.number, height, **_STAR, label=mark.label)


def _quoted(axis, marks: Sequence[Mark]) -> None:
    for mark in marks:
        if mark.at is None:
            axis.axhline(mark.number, color=QUOTED, linestyle="-.", label=mark.label)
        else:
            axis.plot(mark.at, mark.number, **_STAR, label=mark.label)


def _member_at(grid: Any, at: float | None) -> int | None:
    if grid is None or at is None:
        return None
    matches = np.flatnonzero(np.isclose(np.asarray(grid), at))
    return int(matches[0]) if len(matches) else None
