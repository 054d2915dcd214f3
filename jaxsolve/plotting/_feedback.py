"""Drawing the laws of random feedback, each on an axis of its own."""

import numpy as np
from matplotlib.axes import Axes

from ._feedback_data import AlignmentTails, WorstCoverage
from ._style import FAINT, INK, LIMIT, finish, ordered_colours


def draw_alignment_tails(axis: Axes, data: AlignmentTails) -> None:
    """Chances of an alignment: exact lines, empirical points, one colour per dimension.

    The title tells the largest deviation in standard errors among points that more than ten draws reach.
    """
    for index, colour in enumerate(ordered_colours(len(data.dimensions))):
        seen = data.measured[index] > 0
        points = data.squared_cosines[index]
        axis.plot(points, data.predicted[index], color=colour, linewidth=1.2, label=f"D = {data.dimensions[index]:g}")
        axis.plot(points[seen], data.measured[index][seen], "o", color=colour, markersize=3.5)
    axis.plot([], [], "o", color=INK, markersize=3.5, label="draws")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("squared cosine q")
    axis.set_ylabel("chance of q or more")
    error = np.sqrt(data.predicted * (1 - data.predicted) / data.draws)
    counted = data.predicted * data.draws > 10
    deviation = np.abs(data.measured - data.predicted)[counted] / error[counted]
    finish(axis, f"largest deviation {deviation.max():.1f} standard errors of {data.draws} draws")


def draw_worst_coverage(axis: Axes, data: WorstCoverage) -> None:
    """Worst coverage, as a share of `1/D`, of each ensemble: the law, and samples of several sizes."""
    places = np.arange(len(data.names))
    colours = ordered_colours(len(data.draws))
    axis.barh(places, data.exact, color=FAINT, alpha=0.35, height=0.7, label="law")
    for index, (count, colour) in enumerate(zip(data.draws, colours, strict=True)):
        axis.plot(data.sampled[:, index], places, "osD^"[index % 4], color=colour, markersize=5, label=f"{count} draws")
        axis.axvline(data.edge[index], color=colour, linestyle=":", linewidth=1)
    axis.plot([], [], color=INK, linestyle=":", linewidth=1, label="edge for that many draws")
    axis.axvline(1, color=LIMIT, linestyle="--", linewidth=1.2, label="minimax value")
    axis.set_yticks(places, data.names)
    axis.invert_yaxis()
    axis.set_xlim(-0.03, 1.08)
    axis.set_xlabel("smallest eigenvalue of the second moment, times D")
    axis.set_ylabel("law of the feedback")
    above = int((data.sampled > 1).sum())
    finish(axis, f"{above} of {data.sampled.size} above the minimax value, the best {data.sampled.max():.3f} of it")
