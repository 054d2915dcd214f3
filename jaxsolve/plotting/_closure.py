"""Drawing closed population dynamics: curves with and without closure, and where the closure is a saddle."""

import numpy as np
from matplotlib.axes import Axes

from ._closure_data import ClosureCurves, StabilityMap
from ._style import INK, MEASURED, finish


def draw_closure_curves(axis: Axes, data: ClosureCurves, *, steps: int) -> None:
    """Losses of both runs; the title tells where the whole matrix ends, and how far off the diagonal."""
    at = np.linspace(0, steps, len(data.closed))
    axis.plot(at, data.full, "o", color=MEASURED, markersize=3, label="all entries trained")
    axis.plot(at, data.closed, color=INK, linewidth=1.4, label="scalars that close")
    axis.set_yscale("log")
    axis.set_xlabel("training step")
    axis.set_ylabel("population loss")
    ratio = data.full[-1] / data.closed[-1]
    finish(axis, f"ends at {ratio:.3f} of the closure, off-diagonal share {data.off_diagonal[-1]:.1e}")


def draw_stability_map(axis: Axes, data: StabilityMap) -> None:
    """Ratios over depth and spread, with the border between minimum and saddle."""
    reach = float(np.abs(data.ratios - 1).max())
    mesh = axis.pcolormesh(
        data.depths, data.spreads, data.ratios, cmap="RdBu_r", vmin=1 - reach, vmax=1 + reach, shading="nearest"
    )
    axis.figure.colorbar(mesh, ax=axis, label="ratio; a saddle above 1")
    axis.contour(data.depths, data.spreads, data.ratios, levels=[1.0], colors=[INK], linewidths=1.4)
    axis.plot([], [], color=INK, linewidth=1.4, label="ratio 1")
    axis.set_xticks(data.depths)
    axis.set_xlabel("depth")
    axis.set_ylabel("half width of the law of eigenvalues, mean 1")
    saddles = int((data.ratios > 1).sum())
    finish(axis, f"a saddle at {saddles} of {data.ratios.size} points")
