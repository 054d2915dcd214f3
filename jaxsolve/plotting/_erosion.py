"""Drawing what feedback alignment loses: the law of the initial erosion, and its mean against the hidden share."""

import numpy as np
from matplotlib.axes import Axes

from ._erosion_data import ErosionHistogram, ErosionShares
from ._style import INK, LIMIT, MEASURED, finish


def draw_erosion_histogram(axis: Axes, data: ErosionHistogram) -> None:
    """The draws as a histogram, and the density of the predicted normal law; the title has the test."""
    axis.hist(data.draws, bins=50, density=True, color=MEASURED, alpha=0.55, label=f"{data.draws.size} backward passes")
    reach = 4.2 * data.deviation
    at = np.linspace(data.mean - reach, data.mean + reach, 400)
    density = np.exp(-(((at - data.mean) / data.deviation) ** 2) / 2) / (data.deviation * np.sqrt(2 * np.pi))
    axis.plot(at, density, color=INK, linewidth=1.4, label="predicted normal law")
    axis.axvline(data.mean, color=LIMIT, linestyle="--", linewidth=1, label="hidden share")
    axis.set_xlabel("initial erosion")
    axis.set_ylabel("density")
    finish(axis, f"Kolmogorov-Smirnov distance {data.distance:.4f}, p = {data.p_value:.2f}")


def draw_erosion_shares(axis: Axes, data: ErosionShares) -> None:
    """Mean erosions with two standard errors, and hidden shares, against the width; the title has the largest z."""
    score = np.abs(data.means - data.shares) / data.standard_errors
    columns = data.shares.shape[1]
    for column in range(columns):
        shifted = data.widths * 1.03 ** (column - (columns - 1) / 2)
        axis.errorbar(
            shifted,
            data.means[:, column],
            yerr=2 * data.standard_errors[:, column],
            fmt="o",
            color=MEASURED,
            markersize=4,
            capsize=2,
            label=None if column else "mean over feedback, ± 2 standard errors",
        )
        label = None if column else "hidden share, one backward pass"
        axis.plot(shifted, data.shares[:, column], "_", color=INK, markersize=11, label=label)
    axis.set_xscale("log", base=2)
    axis.set_xticks(data.widths, [str(width) for width in data.widths])
    axis.set_ylim(0, 1.15 * float((data.means + 2 * data.standard_errors).max()))
    axis.set_xlabel("width of the hidden layers")
    axis.set_ylabel("initial erosion")
    finish(axis, f"largest deviation {score.max():.2f} standard errors, of {score.size}")
