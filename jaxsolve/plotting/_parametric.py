"""The figure of a parametric equation."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ._parametric_data import CertifiedErrors
from ._style import LIMIT, MEASURED, finish


def draw_certified_errors(axis: Axes, data: CertifiedErrors, *, name: str) -> None:
    """Relative errors over depth, the median and the range over tasks, under the bound that was known beforehand."""
    depths = np.arange(len(data.errors))
    least, middle, largest = (np.quantile(data.errors, share, axis=1) for share in (0, 0.5, 1))
    axis.fill_between(depths, least, largest, color=MEASURED, alpha=0.2, linewidth=0, label="all tasks")
    axis.plot(depths, middle, "o-", color=MEASURED, markersize=4, label="median task")
    axis.plot(depths, largest, ":", color=MEASURED, label="worst task")
    axis.plot(depths, data.bound, "--", color=LIMIT, label=f"certificate, {data.contraction:.3g} per step")
    axis.set_yscale("log")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlabel("depth")
    axis.set_ylabel("relative error in the energy norm")
    held = data.errors <= data.bound[:, None] * (1 + 1e-10) + 1e-13
    finish(axis, f"{name}: {int((~held).sum())} of {held.size} bounds violated")
