"""Drawing what a learned solver does: gains, paths, modes, risks and order parameters, each on an axis of its own."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.animation import PillowWriter
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .._files import atomic_write
from ._solver_data import AttentionModes, GainSpectrum, OrderParameterPath, PhasePath, RiskOverlay
from ._style import FAINT, INK, LIMIT, MEASURED, QUOTED, finish, ordered_colours, shown_members

_DIVERGING = "RdBu_r"
_COLOURS = (MEASURED, LIMIT, QUOTED)
_BOUNDS = (LIMIT, QUOTED, INK)
_DASHES = ("-", "--", "-.")
_MARKERS = ("o", "s", "^")


def draw_gain_spectrum(axis: Axes, data: GainSpectrum, *, saved: int | None = None) -> None:
    """Gains against `1/λ` on logarithmic axes, for up to five saved preconditioners or for one of them.

    Gains that are not positive cannot be shown there and are counted in the title.
    """
    shown = shown_members(len(data.steps)) if saved is None else [saved]
    colours = ordered_colours(len(shown)) if saved is None else [MEASURED]
    inverse = data.inverse_eigenvalues
    axis.plot(inverse, inverse, color=INK, linestyle="--", linewidth=1.2, label="1/λ, the inverse")
    for index, colour in zip(shown, colours, strict=True):
        gains = np.where(data.gains[index] > 0, data.gains[index], np.nan)
        axis.plot(inverse, gains, "o-", color=colour, markersize=4, linewidth=1, label=f"step {data.steps[index]}")
    axis.set_xscale("log")
    axis.set_yscale("log")
    positive = data.gains[data.gains > 0]
    axis.set_ylim(0.7 * min(positive.min(), inverse.min()), 1.5 * max(positive.max(), inverse.max()))
    axis.set_xlabel("1/λ of the mean operator")
    axis.set_ylabel("gain of the mode")
    last = shown[-1]
    hidden = int((data.gains[shown] <= 0).sum())
    told = f"gain · λ of the slowest mode {data.gains[last, -1] / inverse[-1]:.2g} at step {data.steps[last]}"
    finish(axis, told + (f", {hidden} gains not positive" if hidden else ""))


def draw_contraction(axis: Axes, data: GainSpectrum, *, saved: int | None = None) -> None:
    """The worst contraction factor of the mean operator against the training step, with one step marked."""
    axis.plot(data.steps, data.contraction, color=MEASURED, linewidth=1.4, label="max |1 − eig(P H)|")
    axis.axhline(1, color=LIMIT, linestyle="-.", linewidth=1, label="no contraction")
    if saved is not None:
        axis.plot(data.steps[saved], data.contraction[saved], "o", color=INK, label=f"step {data.steps[saved]}")
    axis.set_ylim(0, 1.15 * max(1, data.contraction.max()))
    axis.set_xlabel("training step")
    axis.set_ylabel("worst contraction factor")
    finish(axis, f"worst contraction {data.contraction[0]:.3f} → {data.contraction[-1]:.3f}")


def save_gain_animation(path: Path, data: GainSpectrum, *, frames_per_second: int = 8) -> None:
    """Write gains and worst contraction, one frame per saved preconditioner, as a GIF file, atomically.

    Raises
    ------
    OSError
        Where ``path`` cannot be written.
    """
    figure = Figure(figsize=(10.5, 4), dpi=80)
    figure.subplots_adjust(left=0.07, right=0.985, bottom=0.13, top=0.91)
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 2)
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "gains.gif"
        with (writer := PillowWriter(fps=frames_per_second)).saving(figure, str(target), dpi=80):
            for saved in range(len(data.steps)):
                for axis in axes:
                    axis.clear()
                draw_gain_spectrum(axes[0], data, saved=saved)
                draw_contraction(axes[1], data, saved=saved)
                writer.grab_frame()
        atomic_write(path, target.read_bytes())


def draw_phase_portrait(axis: Axes, paths: Mapping[str, PhasePath], *, operator: np.ndarray | None = None) -> None:
    """Paths of the error in two unknowns, by name, over level lines of the energy `eᵀ H e` where ``operator`` is given.

    The title tells how long each path is compared with the straight line.
    """
    points = np.concatenate([path.errors for path in paths.values()])
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.1 * (high - low).max()
    if operator is not None:
        grids = [np.linspace(low[i] - margin, high[i] + margin, 121) for i in range(2)]
        mesh = np.stack(np.meshgrid(*grids), axis=-1)
        energy = np.einsum("abi,ij,abj->ab", mesh, np.asarray(operator), mesh)
        levels = energy.max() * np.geomspace(1e-3, 1, 9)
        axis.contour(*grids, energy, levels=levels, colors=FAINT, linewidths=0.6, alpha=0.7)
        axis.plot([], [], color=FAINT, linewidth=0.8, label="level lines of the energy")
    for index, (name, path) in enumerate(paths.items()):
        axis.plot(
            *path.errors.T,
            color=_COLOURS[index % 3],
            marker=_MARKERS[index % 3],
            markersize=3.5,
            linewidth=1.2,
            label=name,
        )
    axis.plot(0, 0, marker="*", markersize=12, color=INK, linestyle="none", label="solution")
    axis.set_xlim(low[0] - margin, high[0] + margin)
    axis.set_ylim(low[1] - margin, high[1] + margin)
    axis.set_xlabel("error in the stiff direction")
    axis.set_ylabel("error in the soft direction")
    told = ", ".join(f"{path.detour:.3g} ({name})" for name, path in paths.items())
    finish(axis, f"length over straight line: {told}")


def draw_attention_modes(axis: Axes, data: AttentionModes, index: int, *, name: str, limit: float | None = None):
    """One matrix in eigenmodes as a heat map with limits symmetric about zero, ``limit`` or its largest entry.

    Returns
    -------
    image
        For a colour bar.
    """
    modes = data.modes[index]
    limit = float(np.abs(modes).max()) if limit is None else limit
    edge = len(modes) + 0.5
    image = axis.imshow(modes, cmap=colormaps[_DIVERGING], vmin=-limit, vmax=limit, extent=(0.5, edge, edge, 0.5))
    axis.set_xlabel("mode, stiff to soft")
    axis.set_ylabel("mode, stiff to soft")
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_locator(MaxNLocator(integer=True, nbins=5))
        side.set_tick_params(length=2)
    axis.set_title(f"{name}\noff the diagonal: {data.off_diagonal[index]:.0%}", loc="left", fontsize="medium")
    return image


def draw_risk_overlay(axis: Axes, ratio_axis: Axes, data: RiskOverlay) -> None:
    """The risk with three bounds on one axis, and the bounds over the risk on another: at least 1 where they hold."""
    depths = np.arange(len(data.risk))
    bounds = {
        "bound by powers of ‖I − PH‖₂": data.norm_bound,
        "bound by the norms of powers": data.power_bound,
        "bound by the energy norm": data.energy_bound,
    }
    axis.plot(depths, data.risk, "o-", color=MEASURED, markersize=4, label="measured risk")
    for index, (name, bound) in enumerate(bounds.items()):
        axis.plot(depths, bound, color=_BOUNDS[index], linestyle=_DASHES[index], label=name)
        ratio_axis.plot(depths, bound / data.risk, color=_BOUNDS[index], linestyle=_DASHES[index], label=name)
    ratio_axis.axhline(1, color=INK, linewidth=0.8, label="equality")
    for each in (axis, ratio_axis):
        each.set_yscale("log")
        each.xaxis.set_major_locator(MaxNLocator(integer=True))
        each.set_xlabel("depth")
    axis.set_ylabel("mean square error")
    ratio_axis.set_ylabel("bound / risk")
    violated = sum(int((bound < data.risk * (1 - 1e-10)).sum()) for bound in bounds.values())
    finish(axis, f"risk {data.risk[-1]:.2e} at depth {depths[-1]}, {violated} of {3 * len(depths)} bounds violated")
    finish(
        ratio_axis,
        f"bounds over risk at depth {depths[-1]}: "
        + ", ".join(f"{bound[-1] / data.risk[-1]:.2g}" for bound in bounds.values()),
    )


def draw_order_parameters(axis: Axes, data: OrderParameterPath) -> None:
    """`q_1, q_2, q_3` against the training step."""
    names = ("q₁ = Tr(PH)/K", "q₂ = Tr(PHPH)/K", "q₃ = Tr(PHSHᵀPᵀ)/K")
    for index, name in enumerate(names):
        axis.plot(data.steps, data.values[:, index], color=_COLOURS[index], linestyle=_DASHES[index], label=name)
    axis.set_xlabel("training step")
    axis.set_ylabel("order parameter")
    told = ", ".join(f"{name[:2]} = {value:.3f}" for name, value in zip(names, data.values[-1], strict=True))
    finish(axis, f"at the last step {told}")


def draw_identity_errors(axis: Axes, errors: Mapping[str, tuple[np.ndarray, np.ndarray]], *, epsilon: float) -> None:
    """Relative differences of identities over depth, by name as (depth, difference), against machine epsilon.

    A difference of exactly zero has no place on the axis and is left out.
    """
    for index, (name, (depth, difference)) in enumerate(errors.items()):
        axis.plot(
            depth,
            np.where(difference > 0, difference, np.nan),
            color=_COLOURS[index % 3],
            marker=_MARKERS[index % 3],
            markersize=3.5,
            linewidth=1,
            label=name,
        )
    axis.axhline(epsilon, color=INK, linestyle="--", linewidth=1, label="machine epsilon")
    axis.set_yscale("log")
    axis.set_ylim(epsilon / 10, 100 * max(epsilon, *(difference.max() for _, difference in errors.values())))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlabel("depth")
    axis.set_ylabel("relative difference")
    finish(axis, f"largest difference {max(difference.max() for _, difference in errors.values()):.1e}")


def draw_plateaus(axis: Axes, steps: np.ndarray, loss: np.ndarray, plateaus: np.ndarray) -> None:
    """A loss that falls in stages, with the plateaus that are predicted for it."""
    axis.plot(steps, loss, color=MEASURED, linewidth=1.4, label="trained")
    for index, plateau in enumerate(plateaus):
        axis.axhline(
            plateau, color=LIMIT, linestyle="--", linewidth=0.9, label="predicted plateau" if not index else None
        )
    axis.set_xscale("log")
    axis.set_ylim(0, 1.3 * plateaus.max())
    axis.set_xlabel("training step")
    axis.set_ylabel("mean square error")
    nearest = [np.abs(loss - plateau).min() for plateau in plateaus]
    finish(axis, f"passes all {len(plateaus)} plateaus within {max(nearest):.0e}")
