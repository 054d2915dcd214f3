"""Whole figures of a run, drawn from its records and the evidence it kept."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from .. import theories
from .._files import atomic_write, sha256
from ..claims import parse_numbers
from ..evidence import AbstractTheory, Kind, Pair, load_evidence
from ._comparison import COMPARED, draw_comparison
from ._evidence import Mark, draw_evidence
from ._style import INK

DOTS_PER_INCH = 120

_STYLE: Any = {
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.unicode_minus": True,
}
_MARKED = ("CurveValue", "Mean", "Quantile")


def draw_claim(record: Mapping[str, Any], directory: Path) -> Figure:
    """The figure of one row: the observable that it reads, with its verdict and the printed number.

    Parameters
    ----------
    record
        Record of a measured row.
    directory
        Folder of the run; the record names its data file below it.

    Raises
    ------
    ValueError
        Where the row was not measured, or its data file is missing, damaged or of another run.
    """
    return _draw([record], directory, only=True)


def draw_group(records: Sequence[Mapping[str, Any]], directory: Path) -> Figure:
    """The figure of the rows that read one run: every observable, with its verdict and the printed numbers.

    Parameters
    ----------
    records
        Records of one group.
    directory
        Folder of the run.

    Raises
    ------
    ValueError
        As [`draw_claim`][].
    """
    return _draw(records, directory, only=False)


def save_claim_figure(directory: Path, record: Mapping[str, Any], path: Path) -> None:
    """Write the figure of one row to a PNG file, atomically.

    Raises
    ------
    ValueError
        As [`draw_claim`][].
    OSError
        Where ``path`` cannot be written.
    """
    atomic_write(path, to_png(draw_claim(record, directory)))


def to_png(figure: Figure) -> bytes:
    """A figure as a PNG file with a palette of 256 colours."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    buffer = io.BytesIO()
    image.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(buffer, format="PNG")
    return buffer.getvalue()


def printed_marks(records: Sequence[Mapping[str, Any]], observable: str) -> list[Mark]:
    """The printed numbers that are values of an observable at a grid point, as marks for its figure."""
    marks = []
    for record in records:
        config = record["config"]
        if config["observable"] != observable or config["rule"] is None:
            continue
        reading, printed = config["reading"], parse_numbers(record["quoted"])
        if reading["name"] in _MARKED and printed:
            marks.append(Mark(reading["at"], printed[0], "printed in the source"))
    return marks


def _draw(records: Sequence[Mapping[str, Any]], directory: Path, *, only: bool) -> Figure:
    grid, pairs = _evidence(records[0], directory)
    config, kind = records[0]["config"], Kind(records[0]["kind"])
    verdicts = {record["config"]["observable"]: record for record in reversed(records)}
    observables = list(dict.fromkeys(record["config"]["observable"] for record in records))
    observables += [] if only else [name for name in pairs if name not in observables]
    if missing := set(observables) - set(pairs):
        raise ValueError(f"{records[0]['data']['file']} holds {sorted(pairs)}, not {sorted(missing)}. Run it again.")
    theory = _theory(config["theory"])
    described = {"kind": kind, "grid": grid, "grid_name": _grid_name(theory), "rule": getattr(theory, "rule", None)}
    with rc_context(_STYLE):
        figure, cells = _cells(len(observables), 2 if kind in COMPARED else 1)
        for name, axes in zip(observables, cells, strict=True):
            record = verdicts.get(name)
            words = name.replace("_", " ")
            draw_evidence(
                axes[0],
                pairs[name],
                value_name=words,
                resolution=None if record is None else record["resolution"],
                title=f"{words}: {_verdict(record)}",
                quoted=printed_marks(records, name),
                **described,
            )
            for axis in axes[1:]:
                draw_comparison(axis, pairs[name], title="what the verdict compares", **described)
        title = f"{config['theory'].replace('_', ' ').capitalize()} ({config['configuration'].replace('_', ' ')})"
        told = list(dict.fromkeys(_verdict(record) for record in verdicts.values()))
        figure.suptitle(
            f"{title}: {'; '.join(told)}",
            x=0.15 / figure.get_figwidth(),
            y=1 - 0.12 / figure.get_figheight(),
            horizontalalignment="left",
            verticalalignment="top",
            fontweight="bold",
        )
    return figure


def _evidence(record: Mapping[str, Any], directory: Path) -> tuple[np.ndarray, dict[str, Pair]]:
    if record["data"] is None:
        raise ValueError(f"{record['id']} was not measured. Run it again to draw it.")
    path = directory / record["data"]["file"]
    found = sha256(path)
    if found != record["data"]["sha256"]:
        why = (
            "is missing" if found is None else "is not the file that the record names; it is damaged or of another run"
        )
        raise ValueError(f"{record['data']['file']} {why}. Run {record['group']} again to write it anew.")
    return load_evidence(path)


def _theory(name: str) -> type[AbstractTheory] | None:
    try:
        return theories.load(name)
    except Exception:  # a plug-in that is not installed here, or any way in which it breaks
        return None


def _grid_name(theory: type[AbstractTheory] | None) -> str:
    """What a theory calls its grid: the first sentence of the docstring of its ``grid``, where that is short."""
    told = "" if theory is None else (vars(theory).get("grid", AbstractTheory.grid).__doc__ or "")
    first = told.strip().split("\n")[0].split(". ")[0].rstrip(".").replace("`", "")
    first = first.removeprefix("The ")
    if not first or len(first) > 60 or told == AbstractTheory.grid.__doc__:
        return "grid"
    return first[0].lower() + first[1:] if first[1:2].islower() else first


def _cells(observables: int, columns: int) -> tuple[Figure, list[list[Any]]]:
    """A figure with one row of axes per observable; single axes stand two to a row."""
    across = 2 if columns == 2 or observables > 1 else 1
    rows = -(-observables * columns // across)
    width, height = (10.5 if across == 2 else 7.0), 3.5 * rows + 0.3
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH)
    figure.subplots_adjust(
        left=0.95 / width,
        right=1 - 0.15 / width,
        bottom=0.55 / height,
        top=1 - 0.65 / height,
        wspace=0.25,
        hspace=0.3,
    )
    axes = list(figure.subplots(rows, across, squeeze=False).ravel())
    for spare in axes[observables * columns :]:
        spare.remove()
    return figure, [axes[first : first + columns] for first in range(0, observables * columns, columns)]


def _verdict(record: Mapping[str, Any] | None) -> str:
    if record is None:
        return "read by no row"
    verdict = record["verdict_predicted"]
    told = verdict.replace("_", " ")
    if verdict == "agrees":
        return told
    return f"{told}, {'as expected' if record['expected']['predicted'] == verdict else 'unexpected'}"
