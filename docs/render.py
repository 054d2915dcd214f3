"""Write docs/claims.md and the table of the README from docs/records.json.

``python docs/render.py [RECORDS.jsonl]`` first takes the rows of a run into ``docs/records.json``; the other rows stay.
"""

import json
import platform
import sys
from collections import Counter
from pathlib import Path

from jaxsolve.claims import INSTALLED, LIBRARY, Claim, Document, Status, documents, ledger
from jaxsolve.reproduce import number, outcome, read_lines

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
BEGIN, END = "<!-- verdicts: written by docs/render.py -->\n", "<!-- end of verdicts -->"
KEPT = ["scale", "quoted", "predicted", "measured", "discrepancy", "resolution"]
KEPT += ["verdict_predicted", "verdict_quoted", "seconds", "message"]


def summarise(path: Path, kept: dict) -> dict:
    """The measured rows of a run, with where it ran, and the rows of ``kept`` that it has not measured."""
    records, _ = read_lines(path.read_bytes())
    measured = {name: record for name, record in records.items() if record["data"] is not None}
    first = next(iter(measured.values()))
    run = {key: first[key] for key in ("version", "jax", "device", "dtype", "seed")}
    run |= {"python": platform.python_version(), "machine": platform.machine()}
    rows = {
        name: {**{key: record[key] for key in KEPT}, "outcome": outcome(record)} for name, record in measured.items()
    }
    waited_for = [claim.id for claim in ledger() if claim.status is Status.MEASURED]
    others = kept["rows"].keys() - rows
    if others and run != kept["run"]:
        raise SystemExit(f"{len(others)} rows are from another run: {kept['run']}, not {run}. Measure them again too.")
    rows = kept["rows"] | rows
    return {"run": run, "rows": {name: rows[name] for name in waited_for if name in rows}}


def ran(summary: dict) -> str:
    """One line on the run behind the numbers."""
    run = summary["run"]
    counts = Counter(row["scale"] for row in summary["rows"].values())
    scales = " and ".join(f"{count} rows with `--scale {scale}`" for scale, count in sorted(counts.items()))
    return (
        f"Measured by `jaxsolve reproduce --seed {run['seed']}`, {scales}: jaxsolve {run['version']}, "
        f"jax {run['jax']}, Python {run['python']}, {run['device']} on {run['machine']}, {run['dtype']}."
    )


def heading(document: Document) -> str:
    """Number and title."""
    return f"{document.number} {document.title}".strip()


def readme_table(summary: dict, claims: list[Claim]) -> str:
    """Counts by document."""
    lines = [
        "| document | rows | agree as expected | findings | unexpected | not attempted | not measurable |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for document in (*documents(), LIBRARY):
        rows = [claim for claim in claims if claim.document == document.slug]
        how = Counter(summary["rows"][row.id]["outcome"] for row in rows if row.id in summary["rows"])
        waiting = sum(row.status is Status.NOT_ATTEMPTED for row in rows)
        rest = sum(row.status not in (Status.NOT_ATTEMPTED, Status.MEASURED) for row in rows)
        lines.append(
            f"| {heading(document)} | {len(rows)} | {how['agree']} | {how['finding']} "
            f"| {how['unexpected']} | {waiting} | {rest} |"
        )
    return "\n".join([*lines, "", ran(summary), ""])


def claims_page(summary: dict, claims: list[Claim]) -> str:
    """Every row of the ledger."""
    parts = ["# The ledger", "", "Written by `docs/render.py`; change the files in `jaxsolve/claims/` instead.", ""]
    parts += [ran(summary), ""]
    for document in (*documents(), LIBRARY):
        parts += [f"## {heading(document)}", ""]
        parts += [
            "| claim | statement | quoted | predicted | measured | verdict | note |",
            "|---|---|---|---|---|---|---|",
        ]
        parts += [table_line(claim, summary) for claim in claims if claim.document == document.slug]
        parts.append("")
    return "\n".join(parts)


def table_line(claim: Claim, summary: dict) -> str:
    """One row of the ledger as a line of a Markdown table."""
    name = claim.id.split("/", 1)[1]
    row = summary["rows"].get(claim.id)
    if row is None:
        cells = [name, claim.statement, claim.quoted, "", "", claim.status.value.replace("_", " "), claim.reason]
    else:
        verdict = row["verdict_predicted"] + (f"; printed: {row['verdict_quoted']}" if row["verdict_quoted"] else "")
        cells = [name, claim.statement, claim.quoted, number(row["predicted"]), number(row["measured"])]
        cells += [verdict + (" (finding)" if row["outcome"] == "finding" else ""), claim.reason]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def rendered() -> dict[Path, str]:
    """The text of each generated file."""
    summary = json.loads((DOCS / "records.json").read_text())
    claims = [claim for claim in ledger() if claim.document != INSTALLED.slug]
    before, _, rest = README.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return {
        README: before + BEGIN + readme_table(summary, claims) + END + after,
        DOCS / "claims.md": claims_page(summary, claims),
    }


def main() -> None:
    """Render, after taking new records where a file is given."""
    if len(sys.argv) > 1:
        summary = summarise(Path(sys.argv[1]), json.loads((DOCS / "records.json").read_text()))
        (DOCS / "records.json").write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    for path, text in rendered().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
