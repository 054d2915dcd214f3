"""The table at the end of a run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..claims import Status
from ._run import needs_full_scale, outcome

_STYLES = {"agree": "green", "finding": "yellow", "unexpected": "bold red", "broken": "bold red"}


def summary(records: Sequence[Mapping[str, Any]]) -> str:
    """One line that counts the rows by outcome."""
    counts = Counter(outcome(record) for record in records)
    parts = [
        f"{counts['agree']} agree as expected",
        f"{counts['finding']} disagree as expected (findings)",
        f"{counts['unexpected']} unexpected",
    ]
    if counts["broken"]:
        parts.append(f"{counts['broken']} broken")
    waiting = sum(needs_full_scale(record) for record in records)
    if waiting:
        parts.append(f"{waiting} printed numbers compared at full scale only")
    unmeasured = [f"{counts[status.value]} {status.value}" for status in Status if counts[status.value]]
    if unmeasured:
        parts.append("not measured: " + ", ".join(unmeasured))
    return "; ".join(parts)


def number(value: float | None) -> str:
    """A number for a table: four significant digits, a dash where there is none."""
    return "–" if value is None else f"{value:.4g}"


def verdict_table(records: Sequence[Mapping[str, Any]]):
    """A rich table of the measured rows, under a heading for each document and theory."""
    from rich.table import Table

    table = Table(title=summary(records), title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("claim", overflow="fold")
    table.add_column("kind")
    table.add_column("quoted", justify="right", max_width=24, no_wrap=True, overflow="ellipsis")
    for heading in ("predicted", "measured"):
        table.add_column(heading, justify="right")
    for heading in ("vs predicted", "vs quoted", "outcome"):
        table.add_column(heading)
    theory = ""
    for record in records:
        how = outcome(record)
        if how not in _STYLES:
            continue
        above, _, name = record["id"].rpartition("/")
        if above != theory:
            theory = above
            table.add_row(f"{theory}/", style="bold")
        table.add_row(
            f"  {name}",
            record["kind"],
            record["quoted"],
            number(record["predicted"]),
            number(record["measured"]),
            record["verdict_predicted"],
            record["verdict_quoted"] or "–",
            how,
            style=None if how == "agree" else _STYLES[how],
        )
    return table
