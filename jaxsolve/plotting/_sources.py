"""Drawing where the error of an encoder and a decoder comes from."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from ..certificates import Diagnosis
from ._sources_data import CauseShares, CompositionPath, ScalingAxis
from ._style import FAINT, INK, LIMIT, MEASURED, QUOTED, finish

_CAUSES = ("#0072b2", "#e69f00", "#009e73", "#d55e00")
_HATCHES = ("", "//", "..", "xx")


def draw_composition(axis: Axes, data: CompositionPath) -> None:
    """Floor and decoder part as stacked bars over training, the interaction with its sign, and the total on top.

    The bars stand side by side in the order of the steps, whose spacing is not shown.
    """
    places = np.arange(len(data.steps))
    axis.bar(places, data.floor, width=0.8, color=QUOTED, label="floor: wrong operator")
    axis.bar(
        places, data.decoder, width=0.8, bottom=data.floor, color=MEASURED, hatch="//", label="decoder: unfinished"
    )
    axis.bar(places, np.minimum(data.interaction, 0), width=0.8, color=FAINT, hatch="..", label="interaction")
    positive = np.maximum(data.interaction, 0)
    axis.bar(places, positive, width=0.8, bottom=data.floor + data.decoder, color=FAINT, hatch="..")
    axis.plot(places, data.total, "o-", color=INK, markersize=4, linewidth=1, label="total, from the error alone")
    axis.axhline(0, color=INK, linewidth=0.8)
    heights = np.concatenate([data.decoder + data.floor + positive, data.total])
    axis.set_ylim(1.15 * min(0, data.interaction.min()), 1.08 * heights.max())
    axis.set_xticks(places, [f"{step}" for step in data.steps])
    axis.set_xlabel("training step")
    axis.set_ylabel("mean square error")
    parts = data.decoder + data.floor + data.interaction
    largest = "floor" if data.floor[-1] > data.decoder[-1] else "decoder"
    finish(
        axis,
        f"the {largest} dominates at step {data.steps[-1]}; parts minus total {np.abs(parts - data.total).max():.0e}",
    )


def draw_scaling_axis(
    axis: Axes, data: ScalingAxis, *, size_name: str, error_name: str, exponent: float = -1.0
) -> None:
    """An error over a sample size on logarithmic axes, with a guide of the declared exponent through its last point."""
    bars = 3 * data.standard_errors
    axis.errorbar(data.sizes, data.errors, yerr=bars, fmt="o", color=MEASURED, capsize=2, label="measured ± 3 s.e.")
    if data.exact is not None:
        axis.plot(data.sizes, data.exact, color=LIMIT, linewidth=1.2, label="exact")
    guide = data.errors[-1] * (data.sizes / data.sizes[-1]) ** exponent
    axis.plot(data.sizes, guide, color=INK, linestyle="--", linewidth=0.9, label=f"slope {exponent:g}")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(data.sizes, [f"{size:g}" for size in data.sizes])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel(size_name)
    axis.set_ylabel(error_name)
    finish(axis, f"fitted slope {data.slope:.2f}, declared {exponent:g}")


def draw_diagnosis(axis: Axes, data: CauseShares) -> None:
    """Shares of four causes as bars per diagnosis, with three standard errors, and the cause that each one names."""
    width = 0.8 / len(Diagnosis.causes)
    places = np.arange(len(data.names))
    for number, cause in enumerate(Diagnosis.causes):
        axis.bar(
            places + (number - 1.5) * width,
            data.parts[:, number],
            width=width,
            yerr=3 * data.standard_errors[:, number],
            color=_CAUSES[number],
            hatch=_HATCHES[number],
            error_kw={"ecolor": INK, "elinewidth": 0.8, "capsize": 2},
            label=cause,
        )
    axis.axhline(0, color=INK, linewidth=0.8)
    axis.set_ylim(top=1.3 * (data.parts + 3 * data.standard_errors).max())
    told = [f"{name}\nfound: {verdict}" for name, verdict in zip(data.names, data.verdicts, strict=True)]
    axis.set_xticks(places, told, fontsize="small")
    axis.set_xlabel("run")
    axis.set_ylabel("share of the risk")
    finish(axis, f"largest remainder after all four repairs {data.remainders.max():.1e} of the risk", "cause", 4)
