"""The command line, as a person meets it: real processes, plain messages, no traceback for a mistake."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jaxsolve.claims import Status, ledger
from jaxsolve.cli import app
from jaxsolve.reproduce import KEYS, RECORDS

COMMANDS = ("reproduce", "list", "show", "check", "new-theory", "cite", "plot")
THEORIES = ("adjoint_gradient", "layerwise_gram", "mixed_traces", "overlap_closure", "richardson_identity")
MEASURED = [row for row in ledger() if row.status is Status.MEASURED and row.group.split("/")[1] in THEORIES]
GROUPS = sorted({row.group for row in MEASURED})
NOT_MEASURED = next(row.id for row in ledger() if row.status is Status.OUT_OF_SCOPE)
PATTERNS = [NOT_MEASURED, *(row.id for row in MEASURED)]
ONE_THEORY = "solver-training/adjoint_gradient"
QUICK = MEASURED[-1].id
TEMPLATE = Path(__file__).parents[1] / "jaxsolve" / "theories" / "_template.py"


def command(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), **options.pop("env", {})}
    return subprocess.Popen(
        [sys.executable, "-m", "jaxsolve", *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def run(*arguments, status=0, **options):
    process = command(*arguments, **options)
    out, err = process.communicate(timeout=300)
    assert process.returncode == status, (process.returncode, out[-2000:], err[-2000:])
    assert "Traceback" not in out + err
    return out, err


def invoke(*arguments, status=0):
    """Run a command in this process."""
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == status, (result.exit_code, result.output, result.exception)
    assert "Traceback" not in result.output
    return result.stdout, result.stderr


def records(folder):
    return [json.loads(line) for line in (folder / RECORDS).read_text().splitlines()]


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A finished run of all rows that a few quick theories measure, and of one that is not measured."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    out, _ = run("reproduce", *PATTERNS, "--out", folder)
    return folder, out


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name):
    assert "Usage" in invoke(name, "--help")[0]


def test_version_and_help():
    assert run("--version")[0].startswith("jaxsolve ")
    assert all(name in run("--help")[0] for name in COMMANDS)


def test_the_main_job_ends_with_the_table_and_the_report(finished):
    folder, out = finished
    assert "agree as expected" in out
    assert "0 unexpected" in out
    assert str(folder / "report.html") in out
    rows = records(folder)
    assert {row["id"] for row in rows} >= {row.id for row in MEASURED}
    assert all(list(row) == KEYS for row in rows)
    assert all((folder / row["data"]["file"]).exists() for row in rows if row["status"] == "measured")
    assert (folder / "report.html").stat().st_size > 10_000


def test_every_selected_row_gets_a_line(tmp_path):
    invoke("reproduce", ONE_THEORY, "--out", tmp_path)
    rows = records(tmp_path)
    assert sorted(row["id"] for row in rows) == sorted(row.id for row in ledger() if row.id.startswith(ONE_THEORY))


def started_measuring(folder):
    """A run of which a first row is measured, and others are not."""
    process = command("reproduce", *PATTERNS, "--out", folder)
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and process.poll() is None:
        if (folder / RECORDS).exists() and '"status": "measured"' in (folder / RECORDS).read_text():
            break
        time.sleep(0.02)
    return process


def test_kill_and_resume(finished, tmp_path):
    folder, _ = finished
    process = started_measuring(tmp_path)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    before = {row["id"]: row for row in records(tmp_path) if row["status"] == "measured"}
    complete = {row["group"] for row in before.values()}
    assert 0 < len(complete) < len(GROUPS)
    run("reproduce", *PATTERNS, "--out", tmp_path)
    after = {row["id"]: row for row in records(tmp_path)}
    whole = {group for group in complete if {r.id for r in MEASURED if r.group == group} <= set(before)}
    assert all(after[name] == row for name, row in before.items() if row["group"] in whole)
    for row in records(folder):
        assert {**row, "seconds": 0} == {**after[row["id"]], "seconds": 0}


@pytest.fixture
def interruptible():
    """Jobs in the background of a shell ignore the interrupt, and so would the processes that they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupt_keeps_the_records_and_says_how_to_go_on(tmp_path):
    process = started_measuring(tmp_path)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "Run the same command again" in err
    assert "Traceback" not in err


def test_two_runs_in_one_folder(finished, tmp_path):
    first = command("reproduce", *PATTERNS, "--out", tmp_path)
    while not (tmp_path / ".lock").exists() and first.poll() is None:
        time.sleep(0.02)
    time.sleep(0.2)
    _, err = run("reproduce", *PATTERNS, "--out", tmp_path, status=2)
    assert "same folder" in err
    assert str(tmp_path) in err
    first.communicate(timeout=300)
    assert first.returncode == 0


def test_another_seed_is_refused_unless_fresh(finished):
    folder, _ = finished
    _, err = invoke("reproduce", QUICK, "--out", folder, "--seed", 1, status=2)
    assert "--fresh" in err


def test_an_unwritable_folder_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("mine")
    started = time.monotonic()
    for target in (tmp_path / "file", tmp_path / "file" / "below"):
        _, err = invoke("reproduce", QUICK, "--out", target, status=2)
        assert "file" in err
    assert time.monotonic() - started < 60
    assert (tmp_path / "file").read_text() == "mine"


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path):
    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))

    _, err = run("reproduce", ONE_THEORY, "--out", tmp_path, status=2, preexec_fn=small_files)
    assert "Cannot write to" in err
    kept = records(tmp_path)
    assert kept
    run("reproduce", ONE_THEORY, "--out", tmp_path)
    assert records(tmp_path)[: len(kept)] == kept


def test_a_damaged_line_is_named_and_the_rest_kept(tmp_path):
    invoke("reproduce", ONE_THEORY, "--out", tmp_path)
    path = tmp_path / RECORDS
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0][:50] + b"\n", *lines[1:]]))
    _, err = invoke("reproduce", ONE_THEORY, "--out", tmp_path)
    assert "line 1" in err
    assert (tmp_path / "records.damaged.jsonl").read_bytes() == lines[0][:50] + b"\n"
    assert sorted(path.read_bytes().splitlines(keepends=True)) == sorted(lines)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["reproduce", QUICK[:-1] + "x"], QUICK),
        (["reproduce", "error-source"], "error-sources"),
        (["reproduce", QUICK, "--scale", "huge"], "huge"),
        (["reproduce", QUICK, "--seed", "many"], "--seed"),
        (["reproduce", QUICK, "--no-such-option"], "--no-such-option"),
        (["show", QUICK[:-1] + "x"], QUICK),
        (["show", "error-sources"], "whole id"),
        (["plot", QUICK, "--out", "nowhere"], "Run: jaxsolve reproduce"),
        (["plot", "error-sources/composition/error-split"], ""),
        (["check", "nowhere.py"], "nowhere.py"),
        (["check", "no_such_theory"], "no_such_theory"),
        (["cite", "nobody"], "nobody"),
        (["new-theory", "Not A Name"], "lower-case"),
    ],
)
def test_mistakes_get_a_sentence_and_leave_nothing_behind(tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    _, err = invoke(*arguments, status=2)
    assert told in err
    assert not list(tmp_path.iterdir())


def test_list():
    rows = json.loads(invoke("list", "--json")[0])
    assert [row["id"] for row in rows] == [row.id for row in ledger()]
    assert {"id", "source", "where", "kind", "statement", "quoted", "status", "covers"} <= set(rows[0])
    assert "not_attempted (" in invoke("list", "--by", "status")[0]
    assert QUICK in invoke("list")[0]


def test_show_and_cite():
    out, _ = invoke("show", QUICK)
    assert "breaks when" in out
    assert MEASURED[-1].statement in out
    for name in ("jaxsolve", MEASURED[-1].theory, "feedback-reference"):
        assert invoke("cite", name)[0].startswith("@")


def test_a_new_theory_passes_its_checks_and_a_wrong_one_does_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    invoke("new-theory", "mean_gap")
    assert "class MeanGap" in (tmp_path / "mean_gap.py").read_text()
    assert "11 of 11" in invoke("check", "mean_gap.py")[0]
    invoke("new-theory", "mean_gap", status=2)
    text = (tmp_path / "mean_gap.py").read_text()
    (tmp_path / "wrong.py").write_text(text.replace("self.gain * draw**2", "self.gain * draw**2 * 1.3"))
    assert "FAIL  quick_verdict" in invoke("check", "wrong.py", status=1)[0]
    (tmp_path / "empty.py").write_text("x = 1\n")
    assert "no theory" in invoke("check", "empty.py", status=2)[1]
    (tmp_path / "breaks.py").write_text("import nothing_of_this_name\n")
    assert "nothing_of_this_name" in invoke("check", "breaks.py", status=2)[1]


def test_plot(finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out, _ = invoke("plot", QUICK, "--out", finished[0])
    (picture,) = tmp_path.iterdir()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.name in out


def test_plot_a_picture_of_the_gallery(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "phase-portrait" in invoke("plot", "gallery")[0].splitlines()
    out, _ = invoke("plot", "phase-portrait")
    assert (tmp_path / "phase-portrait.png").read_bytes().startswith(b"\x89PNG")
    assert "phase-portrait.png" in out


@pytest.fixture
def plug_ins(tmp_path):
    """An installed package with one working and one broken theory."""
    package = tmp_path / "site"
    (package / "extra").mkdir(parents=True)
    (package / "extra" / "__init__.py").write_text("")
    (package / "extra" / "good.py").write_text(TEMPLATE.read_text())
    (package / "extra" / "bad.py").write_text("raise ImportError('this plug-in needs a part that is missing')\n")
    info = package / "extra-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[jaxsolve.theories]\n"
        "extra_mean = extra.good:MeanOfDraws\n"
        "extra_broken = extra.bad\n"
        "alignment_law = extra.good\n"
        "not-a-name = extra.good\n"
    )
    return {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), str(package)])}


def test_a_broken_plug_in_is_told_and_the_rest_works(plug_ins, tmp_path):
    out, err = _run_allowing_tracebacks("list", env=plug_ins)
    assert "installed/extra_mean/second-moment" in out
    assert "broken plug-in theory 'extra_broken'" in err
    assert "a part that is missing" in err
    assert "broken plug-in theory 'alignment_law'" in err
    assert "is taken" in err
    assert "lower-case words" in err
    out, _ = run("reproduce", "installed", "--out", tmp_path / "run", env=plug_ins)
    assert "1 agree as expected" in out


def _run_allowing_tracebacks(*arguments, **options):
    process = command(*arguments, **options)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    return out, err
