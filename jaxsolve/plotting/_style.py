"""What all figures share: colours, markers, and how an axis is finished."""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from ..evidence import Curve, Law, Pair
from ._data import logarithmic_grid

INK = "#24292f"
MEASURED = "#0072b2"
LIMIT = "#d55e00"
QUOTED = "#cc79a7"
FAINT = "#8c959f"
"""Colours after Okabe and Ito, told apart in every common form of colour vision; markers and dashes differ too."""

SHOWN_MEMBERS = 5
"""Members of a panel, or lines of a curve, that get a colour and a legend entry of their own."""


def grid_axis(axis, pair, grid_name: str) -> None:
    """Name the horizontal axis, and make it logarithmic where the grid is."""
    assert isinstance(pair.predicted, Curve)
    grid = np.asarray(pair.predicted.grid, dtype=float)
    axis.set_xlabel(grid_name)
    if logarithmic_grid(grid):
        axis.set_xscale("log")
        if grid.size <= 12:
            axis.set_xticks(grid, [f"{value:g}" for value in grid])
            axis.xaxis.set_minor_locator(NullLocator())
    elif grid.size == 1:
        axis.set_xticks(grid, [f"{grid[0]:g}"])
    elif (grid == np.round(grid)).all():
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def finish(axis, title: str, legend_title: str = "", legend_columns: int = 1) -> None:
    """Title, grid lines and legend; entries of one label appear once."""
    axis.set_title(title.replace("$", r"\$"), loc="left", fontsize="medium")
    axis.spines[["top", "right"]].set_visible(False)
    _label_log_axis(axis)
    axis.grid(True, color=FAINT, alpha=0.25, linewidth=0.6)
    axis.set_axisbelow(True)
    handles, labels = axis.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    axis.legend(
        unique.values(),
        unique.keys(),
        ncols=legend_columns,
        title=legend_title or None,
        fontsize="small",
        title_fontsize="small",
        alignment="left",
        framealpha=0.8,
        edgecolor="none",
    )


def _label_log_axis(axis) -> None:
    if axis.get_yscale() != "log":
        return
    low, high = axis.get_ylim()
    if high < 60 * low:
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_locator(NullLocator())


def first(index: int, label: str) -> str:
    """A legend label for the first of several alike; the others get none."""
    return "_nolegend_" if index else label


def markers(points: int, bare: bool = False) -> dict[str, Any]:
    """Markers where the points are few enough to be told apart; ``bare`` lines carry more of them."""
    return {"marker": "o", "markersize": 4 if points <= 30 else 2} if points <= (120 if bare else 40) else {}


def shown_members(members: int) -> list[int]:
    """Members of a panel that are shown in colour: the first, the last and some between."""
    return sorted({round(index) for index in np.linspace(0, members - 1, min(members, SHOWN_MEMBERS))})


def ordered_colours(count: int) -> list[Any]:
    """Colours for members in the order of the grid, dark to light."""
    return list(mpl.colormaps["viridis"](np.linspace(0, 0.72, count)))


def member_names(pair: Pair, grid: Any) -> list[str]:
    """Grid values of the members of a panel, or their numbers where the grid is not theirs."""
    assert isinstance(pair.predicted, Law)
    members = pair.predicted.mean.shape[0]
    if grid is None or np.shape(grid) != (members,):
        return [f"member {member + 1}" for member in range(members)]
    return [f"{value:g}" for value in np.asarray(grid)]
