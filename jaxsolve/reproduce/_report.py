"""The report of a run: one HTML page that holds everything, and the figures it shows as files."""

import base64
import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from .. import theories
from .._files import atomic_write
from ..claims import INSTALLED, LIBRARY, Status, documents
from ..evidence import AbstractTheory
from ._run import needs_full_scale, outcome
from ._table import number, summary

REPORT = "report.html"
FIGURES = "figures"

_OUTCOMES = ("agree", "finding", "unexpected", "broken", "not measured")
_SYMBOLS = {"agrees": "✓", "disagrees": "✗", "inconclusive": "?", "not_run": "–"}
_FEW = 6

Records = Sequence[Mapping[str, Any]]


def figures(directory: Path, records: Records) -> dict[str, Path]:
    """Draw the evidence of each group into ``directory/figures``, one PNG file per group.

    Parameters
    ----------
    directory
        Folder of the run.
    records
        Records whose groups are drawn.

    Returns
    -------
    dict[str, Path]
        The file of each group that could be drawn. A group whose theory broke, or whose data file is missing or
        damaged, is left out.

    Raises
    ------
    OSError
        Where a figure cannot be written.
    """
    drawn = {group: _figure(directory, group, members) for group, members in _groups(records).items()}
    return {group: figure for group, figure in drawn.items() if isinstance(figure, Path)}


def write_report(directory: Path, records: Records) -> Path:
    """Write ``report.html``: verdicts, figures, findings, and the rows that were not measured.

    The page needs no network and no script. A figure that cannot be drawn is replaced by the reason.

    Parameters
    ----------
    directory
        Folder of the run, with its ``data/``.
    records
        Records in ledger order.

    Returns
    -------
    Path
        The report.

    Raises
    ------
    OSError
        Where a file cannot be written.
    """
    path = directory / REPORT
    atomic_write(path, _page(directory, records).encode())
    return path


def _groups(records: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    gathered: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        if record["status"] == Status.MEASURED.value:
            gathered.setdefault(record["group"], []).append(record)
    return gathered


def _figure(directory: Path, group: str, members: Records) -> Path | str:
    """The file of a figure, or why there is none."""
    measured = [record for record in members if record["data"] is not None]
    if not measured:
        return members[0]["message"] or "Nothing was measured."
    from ..plotting import draw_group, to_png

    try:
        content = to_png(draw_group(measured, directory))
    except Exception as error:  # a figure never costs the reader the verdicts
        return f"The figure could not be drawn. {error if isinstance(error, ValueError) else repr(error)}"
    path = directory / FIGURES / f"{group.replace('/', '--')}.png"
    atomic_write(path, content)
    return path


def _page(directory: Path, records: Records) -> str:
    titles = {document.slug: document.title for document in (*documents(), LIBRARY, INSTALLED)}
    measured = [record for record in records if record["status"] == Status.MEASURED.value]
    sections = [
        _section_of_document(directory, slug, titles, [r for r in measured if r["source"] == slug])
        for slug in dict.fromkeys(record["source"] for record in measured)
    ]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>jaxsolve report: {_text(summary(records))}</title>
<style>{(files("jaxsolve.reproduce") / "_report.css").read_text()}</style>
</head>
<body>
<header>
<h1>Reproduction report</h1>
<p class="machine">{_machine(measured or records)}</p>
{_tiles(records)}
<p>{_text(_words(summary(records)))}.</p>
</header>
<main>
{_unexpected(measured)}
{_READING}
{_contents(records, titles)}
{_findings(measured)}
{"".join(sections)}
{_not_measured(records)}
</main>
</body>
</html>
"""


def _tiles(records: Records) -> str:
    counts = _counts(records)
    links = {
        "finding": "#findings",
        "unexpected": "#unexpected",
        "broken": "#unexpected",
        "not measured": "#unmeasured",
    }
    names = {"agree": "agree", "finding": "known findings", "unexpected": "unexpected", "broken": "broken"}
    tiles = []
    for kind in _OUTCOMES:
        if kind == "broken" and not counts[kind]:
            continue
        label = f"<b>{counts[kind]}</b> {names.get(kind, kind)}"
        linked = f'<a href="{links[kind]}">{label}</a>' if counts[kind] and kind in links else f"<span>{label}</span>"
        tiles.append(f'<li class="{_class(kind) if counts[kind] else "none"}">{linked}</li>')
    return f'<ul class="tiles">{"".join(tiles)}</ul>'


def _machine(records: Records) -> str:
    def values(key: str) -> str:
        return ", ".join(dict.fromkeys(str(record[key]) for record in records)) or "–"

    seconds = sum({record["group"]: record["seconds"] or 0.0 for record in records}.values())
    parts = [
        f"jaxsolve {values('version')}",
        f"jax {values('jax')}",
        f"device {values('device')}",
        f"scale {values('scale')}",
        f"seed {values('seed')}",
        values("dtype"),
        f"{seconds:.0f} s of runs",
    ]
    return " · ".join(_text(part) for part in parts)


def _contents(records: Records, titles: Mapping[str, str]) -> str:
    rows = []
    for slug in dict.fromkeys(record["source"] for record in records):
        members = [record for record in records if record["source"] == slug]
        counts = _counts(members)
        title = _text(titles.get(slug, slug))
        if counts["not measured"] < len(members):
            title = f'<a href="#{_text(slug)}">{title}</a>'
        cells = "".join(f"<td class='number'>{counts[kind] or '·'}</td>" for kind in _OUTCOMES)
        rows.append(f'<tr><th scope="row">{title}</th>{cells}</tr>')
    headings = "".join(f'<th scope="col" class="number">{kind}</th>' for kind in _OUTCOMES)
    return f"""<nav aria-labelledby="contents"><h2 id="contents">Contents</h2>
{_scroll("Rows by document and outcome")}<table class="contents">
<thead><tr><th scope="col">document</th>{headings}</tr></thead>
<tbody>{"".join(rows)}</tbody></table></div></nav>"""


def _unexpected(measured: Records) -> str:
    rows = [record for record in measured if outcome(record) in ("unexpected", "broken")]
    if not rows:
        return ""
    items = "".join(
        f"<li>{_link(record)}: expected {_expected(record)}, found {_found(record)}"
        f'<span class="said">{_text(record["message"])}</span></li>'
        for record in rows
    )
    return f"""<section class="alarm" aria-labelledby="unexpected"><h2 id="unexpected">Unexpected verdicts</h2>
<p>These rows came out otherwise than the ledger says. Look here first.</p><ul>{items}</ul></section>"""


def _findings(measured: Records) -> str:
    by_reason: dict[str, list[Mapping[str, Any]]] = {}
    for record in measured:
        if outcome(record) == "finding":
            by_reason.setdefault(record["reason"], []).append(record)
    if not by_reason:
        return ""
    items = []
    for reason, rows in by_reason.items():
        links = ", ".join(_link(record) for record in rows)
        if len(rows) > _FEW:
            links = f"<details><summary>{len(rows)} rows</summary>{links}</details>"
        items.append(f"<li><p>{_prose(reason)}</p><p class='rows'>{links}</p></li>")
    return f"""<section aria-labelledby="findings"><h2 id="findings">Known findings</h2>
<p>Rows in which the measurement is expected not to agree with a prediction or a printed number, with the reason
entered before the run.</p><ul class="findings">{"".join(items)}</ul></section>"""


def _section_of_document(directory: Path, slug: str, titles: Mapping[str, str], records: Records) -> str:
    title = titles.get(slug, slug)
    articles = "".join(_article(directory, group, members) for group, members in _groups(records).items())
    return f'<section aria-labelledby="{_text(slug)}"><h2 id="{_text(slug)}">{_text(title)}</h2>{articles}</section>'


def _article(directory: Path, group: str, members: Records) -> str:
    first = members[0]
    name, configuration = (words.replace("_", " ") for words in group.split("/")[1:3])
    suffix = "" if configuration == "default" else f" <small>{_text(configuration)}</small>"
    theory = _theory(group.split("/")[1])
    seconds = "" if first["seconds"] is None else f" · {first['seconds']:.1f} s"
    data = "" if first["data"] is None else f" · <code>{_text(first['data']['file'])}</code>"
    return f"""<article><h3>{_text(name.capitalize())}{suffix}</h3>
<p class="meta"><span class="kind">{_text(_words(first["kind"]))}</span>{seconds}{data}</p>
{_statement(theory, members)}
{_embedded(directory, group, members)}
{_table(group, members)}
</article>"""


def _statement(theory: type[AbstractTheory] | None, members: Records) -> str:
    if theory is None:
        told = list(dict.fromkeys(record["statement"] for record in members))
        return "".join(f'<p class="statement">{_prose(statement)}</p>' for statement in told[:_FEW])
    limits = f"Assumes: {'; '.join(theory.assumptions).rstrip('.')}. Breaks when: {theory.breaks_when.rstrip('.')}."
    return f'<p class="statement">{_prose(theory.statement)}</p><p class="limits">{_prose(limits)}</p>'


def _theory(name: str) -> type[AbstractTheory] | None:
    try:
        return theories.load(name)
    except Exception:  # a plug-in that is not installed here, or any way in which it breaks
        return None


def _embedded(directory: Path, group: str, members: Records) -> str:
    figure = _figure(directory, group, members)
    if isinstance(figure, str):
        return f'<p class="missing">{_text(figure)}</p>'
    verdicts: dict[str, Mapping[str, Any]] = {}
    for record in members:
        verdicts.setdefault(record["config"]["observable"], record)
    told = [(_words(name), _words(record["verdict_predicted"]), record["message"]) for name, record in verdicts.items()]
    alt = f"{_words(group.split('/')[1])}, predicted and measured. " + "; ".join(f"{n}: {v}" for n, v, _ in told) + "."
    caption = "<br>".join(
        f"<b>{_text(name)}</b>: {_text(verdict)}; {_text(message.split('. Printed: ')[0])}."
        for name, verdict, message in told
    )
    encoded = base64.b64encode(figure.read_bytes()).decode()
    image = f'<img alt="{_text(alt)}" src="data:image/png;base64,{encoded}">'
    return f"""<figure>{_scroll("Figure of " + group)}{image}</div>
<figcaption>{caption}</figcaption></figure>"""


_COLUMNS = (
    "claim",
    "kind",
    "printed",
    "predicted",
    "measured",
    "discrepancy",
    "resolution",
    "against predicted",
    "against printed",
    "expected",
    "fidelity",
)


def _table(group: str, members: Records) -> str:
    headings = "".join(
        f'<th scope="col"{_numeric(index in range(2, 7))}>{heading}</th>' for index, heading in enumerate(_COLUMNS)
    )
    rows = "".join(_row(record) for record in members)
    return f"""{_scroll("Rows of " + group)}<table class="claims">
<thead><tr>{headings}</tr></thead>
{rows}</table></div>"""


def _row(record: Mapping[str, Any]) -> str:
    """A group of two table rows: the numbers, and below them the statement and what is to be said about it."""
    how = outcome(record)
    numbers = [record[key] for key in ("predicted", "measured", "discrepancy", "resolution")]
    tag = "" if how == "agree" else f' <span class="tag">{how}</span>'
    cells = [
        f'<th scope="rowgroup"><code>{_breakable(record["id"])}</code>{tag}</th>',
        f"<td>{_text(_words(record['kind']))}</td>",
        f'<td class="number printed">{_text(record["quoted"]) or "–"}</td>',
        *(f'<td class="number">{_text(number(value))}</td>' for value in numbers),
        f"<td>{_verdict(record['verdict_predicted'])}</td>",
        f"<td>{_verdict(record['verdict_quoted'])}</td>",
        f"<td>{_expected(record)}</td>",
        f"<td>{_text(_words(record['fidelity']))}</td>",
    ]
    notes = [f"<p>{_prose(record['statement'])} <i>{_text(record['where'])}</i></p>"]
    if record["reason"]:
        notes.append(f'<p class="reason">{_prose(record["reason"])}</p>')
    if needs_full_scale(record):
        notes.append('<p class="reason">The printed number is compared at full scale only.</p>')
    if how in ("finding", "unexpected") and record["message"]:
        notes.append(f'<p class="reason">Found: {_text(record["message"].split("Printed: ")[-1])}</p>')
    return (
        f'<tbody class="{how}" id="{_text(record["id"])}"><tr>{"".join(cells)}</tr>'
        f'<tr class="note"><td colspan="{len(_COLUMNS)}"><div>{"".join(notes)}</div></td></tr></tbody>'
    )


def _not_measured(records: Records) -> str:
    parts = []
    for status in Status:
        rows = [record for record in records if record["status"] == status.value]
        if status is Status.MEASURED or not rows:
            continue
        body = "".join(
            f'<tr><th scope="row" id="{_text(record["id"])}"><code>{_breakable(record["id"])}</code></th>'
            f"<td>{_text(_words(record['kind']))}</td>"
            f"<td>{_prose(record['statement'])} <i>{_text(record['where'])}</i></td>"
            f'<td class="number printed">{_text(record["quoted"]) or "–"}</td>'
            f"<td>{_prose(record['reason']) or '–'}</td></tr>"
            for record in rows
        )
        headings = "".join(
            f'<th scope="col"{_numeric(heading == "printed")}>{heading}</th>'
            for heading in ("claim", "kind", "statement", "printed", "reason")
        )
        parts.append(
            f"<details><summary>{_text(_words(status.value))}: {len(rows)}</summary>"
            f'{_scroll("Rows " + _words(status.value))}<table class="claims unmeasured">'
            f"<thead><tr>{headings}</tr></thead><tbody>{body}</tbody></table></div></details>"
        )
    if not parts:
        return ""
    return f"""<section aria-labelledby="unmeasured"><h2 id="unmeasured">Not measured</h2>
<p>Rows of the ledger that no run settles, by the reason why.</p>{"".join(parts)}</section>"""


def _counts(records: Records) -> Counter[str]:
    found = (outcome(record) for record in records)
    return Counter(how if how in _OUTCOMES else "not measured" for how in found)


def _expected(record: Mapping[str, Any]) -> str:
    expected = record["expected"]
    predicted, printed = (
        None if expected[side] is None else _words(expected[side]) for side in ("predicted", "quoted")
    )
    if printed in (None, predicted):
        return _text(predicted or "–")
    return f"{_text(predicted or '–')}; printed {_text(printed)}"


def _found(record: Mapping[str, Any]) -> str:
    predicted, printed = record["verdict_predicted"], record["verdict_quoted"]
    return _text(
        _words(predicted) if printed in (None, predicted) else f"{_words(predicted)}; printed {_words(printed)}"
    )


def _verdict(verdict: str | None) -> str:
    if verdict is None:
        return "–"
    return (
        f'<span class="verdict {_text(verdict)}"><i aria-hidden="true">{_SYMBOLS[verdict]}</i> {_words(verdict)}</span>'
    )


def _link(record: Mapping[str, Any]) -> str:
    return f'<a href="#{_text(record["id"])}"><code>{_breakable(record["id"])}</code></a>'


def _scroll(label: str) -> str:
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{_text(label)}">'


def _numeric(yes: bool) -> str:
    return ' class="number"' if yes else ""


def _class(kind: str) -> str:
    return kind.replace(" ", "-")


def _words(name: str) -> str:
    return name.replace("_", " ")


def _text(value: object) -> str:
    return html.escape(str(value))


def _breakable(claim_id: str) -> str:
    return _text(claim_id).replace("/", "/<wbr>").replace("_", "_<wbr>")


def _prose(text: str) -> str:
    """Escaped text in which backticks set code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _text(text))


_READING = """<section aria-labelledby="reading"><h2 id="reading">How to read a verdict</h2>
<p>Each row is compared twice. <b>Against predicted</b> holds our measurement against the theory; the kind of the
statement says how: an identity up to rounding, a mean within standard errors, a law by Kolmogorov and Smirnov, a bound
by counting violations. <b>Against printed</b> holds our number against the one in the source. <i>Agrees</i> means that
the discrepancy is within what the rule allows and that the run could have seen an error of the size that matters;
where it could not, the verdict is <i>inconclusive</i>. A row that <i>disagrees</i> as the ledger expects is a known
finding, and only a verdict that differs from the expected one is a failure. <i>Not run</i> against printed: the number
has a meaning only at the size that the full scale has. Discrepancy and resolution share the units of the
rule.</p></section>"""
