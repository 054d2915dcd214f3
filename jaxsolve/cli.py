"""The command line: typer for the commands, rich for what they print."""

import enum
import importlib.util
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from . import __version__

USAGE = 2
"""Exit status of a usage error or a breakage; 0 is all as expected, 1 an unexpected verdict."""

INTERRUPTED = 130

app = typer.Typer(
    help="Predict, simulate and judge the training dynamics of neural networks and learned solvers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Scale(enum.StrEnum):
    """Size of a run."""

    quick = "quick"
    full = "full"


class GroupBy(enum.StrEnum):
    """What ``list`` counts by."""

    source = "source"
    kind = "kind"
    status = "status"


Out = Annotated[Path, typer.Option("--out", help="Folder of the run.", show_default=True)]
DEFAULT_OUT = Path("jaxsolve-report")


def main() -> None:
    """Entry point: run a command with 64-bit numbers on."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _fail(message: str, status: int = USAGE) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(status)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"jaxsolve {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if "jax" in sys.modules:
        import jax

        jax.config.update("jax_enable_x64", True)
    else:
        os.environ["JAX_ENABLE_X64"] = "1"


@app.command("reproduce")
def reproduce_command(
    patterns: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATTERN]...", help="Shell patterns on claim ids; a prefix selects all below it."),
    ] = None,
    scale: Annotated[Scale, typer.Option(help="Size of the runs.")] = Scale.quick,
    out: Out = DEFAULT_OUT,
    seed: Annotated[int, typer.Option(help="Seed of the runs; instances are fixed.", min=0, max=2**32 - 1)] = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Replace the records of an earlier run.")] = False,
) -> None:
    """Measure claims, print the table of verdicts and write a report.

    Exit status: 0 every verdict as expected, 1 some verdict differs, 2 usage or breakage, 130 interrupted.
    """
    from rich.console import Console

    from . import reproduce as pipeline

    chosen = _select(patterns or [])
    try:
        outcome = _run_with_progress(chosen, out, scale, seed, fresh)
        report = pipeline.write_report(out, outcome.records)
    except pipeline.FolderError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"Cannot write to {out}: {error.strerror or error}. The records are kept; run the same command again.")
    except KeyboardInterrupt:
        _fail(f"Interrupted; the records in {out} are kept. Run the same command again to go on.", INTERRUPTED)
    for note in outcome.notes:
        typer.echo(note, err=True)
    Console(width=None if sys.stdout.isatty() else 160).print(pipeline.verdict_table(outcome.records))
    typer.echo(pipeline.summary(outcome.records))
    typer.echo(f"Report: {report}")
    for group, path in outcome.broken.items():
        typer.echo(f"{group} broke; the traceback is in {path}", err=True)
    if outcome.broken:
        raise typer.Exit(USAGE)
    if any(pipeline.outcome(record) == "unexpected" for record in outcome.records):
        raise typer.Exit(1)


def _run_with_progress(chosen, out: Path, scale: Scale, seed: int, fresh: bool):
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from . import reproduce as pipeline

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task("theories", total=None)

        def advance(name: str, done: int, total: int) -> None:
            bar.update(task, description=name or "done", completed=done, total=total)

        return pipeline.reproduce(chosen, out, scale=scale.value, seed=seed, fresh=fresh, progress=advance)


def _select(patterns: Sequence[str]):
    from . import reproduce as pipeline
    from .claims import ledger

    try:
        return pipeline.select(ledger(), patterns)
    except pipeline.NoMatchError as error:
        _fail(str(error))


@app.command("list")
def list_command(
    by: Annotated[GroupBy | None, typer.Option(help="List the rows under headings, with counts.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array of all rows.")] = False,
) -> None:
    """List the rows of the ledger."""
    from .claims import ledger
    from .theories import BrokenTheory, plug_ins

    rows = [_row(claim) for claim in ledger()]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=1))
    elif by is None:
        _echo_rows(rows)
    else:
        for name, count in Counter(row[by.value] for row in rows).items():
            typer.echo(f"{name} ({count})")
            _echo_rows([row for row in rows if row[by.value] == name], indent="  ")
    for broken in plug_ins().values():
        if isinstance(broken, BrokenTheory):
            typer.echo(f"broken plug-in theory {broken.name!r}:\n{broken.traceback}", err=True)


def _echo_rows(rows: Sequence[dict[str, Any]], indent: str = "") -> None:
    for row in rows:
        typer.echo(f"{indent}{row['id']}  [{row['kind']}, {row['status']}]  {row['quoted']}".rstrip())


def _row(claim) -> dict[str, Any]:
    from . import reproduce as pipeline

    return {
        "id": claim.id,
        "source": claim.document,
        "where": claim.where,
        "kind": claim.kind.value,
        "statement": claim.statement,
        "quoted": claim.quoted,
        "status": claim.status.value,
        "reason": claim.reason,
        "fidelity": claim.fidelity.value,
        "expected": pipeline.expected(claim),
        "covers": list(claim.covers),
        "group": claim.group,
        "config": pipeline.configuration(claim),
    }


@app.command("show")
def show_command(claim_id: Annotated[str, typer.Argument(metavar="ID", help="Id of a claim.")]) -> None:
    """Show one claim, and the statement, assumptions and limits of its theory."""
    from . import theories

    row = _row(_one(claim_id))
    for name, value in row.items():
        if value not in ("", None, []):
            typer.echo(f"{name:>12}  {json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value}")
    if row["config"] is not None:
        theory = theories.load(row["config"]["theory"])
        typer.echo(f"{'theory':>12}  {theory.statement}")
        typer.echo(f"{'assumes':>12}  {'; '.join(theory.assumptions)}")
        typer.echo(f"{'breaks when':>12}  {theory.breaks_when}")


def _one(claim_id: str):
    chosen = _select([claim_id])
    if len(chosen) != 1:
        _fail(f"{claim_id!r} matches {len(chosen)} claims; give the whole id. The first is {chosen[0].id}.")
    return chosen[0]


@app.command("check")
def check_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A Python file with one theory, or a theory's name.")],
) -> None:
    """Run the conformance suite on a theory.

    Exit status: 0 every check passed, 1 some check failed, 2 the file holds no theory.
    """
    from .evidence import Conformance

    failed = 0
    suite = Conformance(_theory_of(file))
    for name in suite.checks:
        check = suite.run(name)
        failed += not check.passed
        typer.echo(f"{'pass' if check.passed else 'FAIL'}  {name:16} {check.detail}".rstrip())
    typer.echo(f"{len(suite.checks) - failed} of {len(suite.checks)} checks passed")
    raise typer.Exit(1 if failed else 0)


def _theory_of(file: str):
    from . import theories

    path = Path(file)
    if not path.suffix and not path.exists():
        try:
            return theories.load(file)
        except ValueError as error:
            _fail(str(error))
    if not path.is_file():
        _fail(f"{file} is not a file. Give a Python file, or the name of a theory: {', '.join(theories.names())}.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        _fail(f"{file} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        return theories.theory_in(module)
    except Exception as error:
        _fail(f"{file} holds no theory that can be loaded. {type(error).__name__}: {error}")


@app.command("new-theory")
def new_theory_command(
    name: Annotated[str, typer.Argument(help="File name of the theory, words joined by '_'.")],
) -> None:
    """Write NAME.py in this folder: a theory that passes its checks, to be changed into yours."""
    from importlib.resources import files

    if not name.isidentifier() or name != name.lower() or name.startswith("_"):
        _fail(f"{name!r} is not a file name for a theory. Use lower-case words joined by '_', such as 'mean_gap'.")
    path = Path(f"{name}.py")
    template = (files("jaxsolve.theories") / "_template.py").read_text()
    class_name = "".join(word.capitalize() for word in name.split("_"))
    try:
        with open(path, "x") as file:
            file.write(template.replace("MeanOfDraws", class_name))
    except FileExistsError:
        _fail(f"{path} exists already; choose another name.")
    except OSError as error:
        _fail(f"Cannot write {path}: {error.strerror}.")
    typer.echo(f"Wrote {path}. Change it, then run: jaxsolve check {path}")


@app.command("cite")
def cite_command(
    name: Annotated[str, typer.Argument(help="Name of a theory, slug of a document, or 'jaxsolve'.")],
) -> None:
    """Print the BibTeX entry of a theory, a document or the library."""
    from . import theories
    from .claims import documents

    entries = {document.slug: document.bibtex for document in documents()}
    entries["jaxsolve"] = (
        f"@software{{jaxsolve,\n  author = {{The jaxsolve developers}},\n  title = {{jaxsolve}},\n"
        f"  version = {{{__version__}}},\n  year = {{2026}}\n}}"
    )
    if name in entries:
        typer.echo(entries[name].strip())
        return
    try:
        typer.echo(theories.load(name).source.strip())
    except ValueError as error:
        _fail(f"{error} Documents: {', '.join(entries)}.")


@app.command("plot")
def plot_command(
    claim_id: Annotated[str, typer.Argument(metavar="ID", help="Id of a measured claim, or a name in the gallery.")],
    out: Out = DEFAULT_OUT,
) -> None:
    """Draw the evidence of a claim from the folder of a run, or a picture of the gallery, into a file.

    The gallery needs no folder: each picture trains what it shows, in seconds. 'jaxsolve plot gallery' lists it.
    """
    from . import reproduce as pipeline
    from .plotting import GALLERY, save_claim_figure, save_gallery_figure

    if claim_id == "gallery":
        typer.echo("\n".join(GALLERY))
        return
    if claim_id in GALLERY:
        try:
            paths = save_gallery_figure(claim_id, Path())
        except OSError as error:
            _fail(f"Cannot write into this folder: {error.strerror}.")
        typer.echo(f"Wrote {', '.join(map(os.fspath, paths))}")
        return
    claim = _one(claim_id)
    if claim.measure is None:
        _fail(f"{claim.id} is not measured ({claim.status.value}); there is nothing to draw.")
    measure = f"jaxsolve reproduce '{claim.id}' --out {out}"
    try:
        records, _ = pipeline.read_lines((out / pipeline.RECORDS).read_bytes())
    except OSError as error:
        _fail(f"Cannot read {out / pipeline.RECORDS}: {error.strerror}. Run: {measure}")
    record = records.get(claim.id)
    if record is None or record["data"] is None:
        _fail(f"{out} holds no measurement of {claim.id}. Run: {measure}")
    path = Path(f"{claim.id.replace('/', '--')}.png")
    try:
        save_claim_figure(out, record, path)
    except (OSError, ValueError) as error:
        _fail(str(error))
    typer.echo(f"Wrote {os.fspath(path)}")
