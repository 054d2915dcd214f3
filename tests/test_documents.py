"""What the documents say is what the code does."""

import importlib.util
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from jaxsolve import __version__
from jaxsolve.claims import documents, ledger

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_up_to_date():
    for path, text in load(ROOT / "docs" / "render.py").rendered().items():
        assert path.read_text() == text, f"{path.name} is stale: run python docs/render.py"


def test_no_committed_verdict_is_unexpected():
    rows = load(ROOT / "docs" / "render.py").json.loads((ROOT / "docs" / "records.json").read_text())["rows"]
    assert {row["outcome"] for row in rows.values()} <= {"agree", "finding"}
    assert set(rows) == {claim.id for claim in ledger() if claim.measure is not None}


def test_the_readme_has_its_two_commands():
    for heading in ("Run it", "Test it"):
        (block,) = re.findall(rf"^## {heading}\n\n```bash\n(.*?)\n```$", README, re.DOTALL | re.MULTILINE)
        assert "\n" not in block
        for part in block.split(" && "):
            assert shlex.split(part)


def test_the_readme_example_runs():
    (example,) = re.findall(r"^```python\n(.*?)\n```$", README, re.DOTALL | re.MULTILINE)
    assert 10 <= sum(bool(line.strip()) for line in example.splitlines()) <= 16
    names: dict = {}
    exec(example, names)
    assert names["aligned"].shape == (320, 320)
    assert 0 < float(names["erosion"]) < 1


def test_links_between_documents_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_version_is_told_once():
    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"[{__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_ledger_is_counted_right():
    slugs = {document.slug for document in documents()}
    assert f"**A ledger** of {sum(row.document in slugs for row in ledger())} claims" in README


def test_the_ci_script_can_be_run():
    assert os.stat(ROOT / ".ci" / "run").st_mode & stat.S_IXUSR
    assert subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=False).returncode == 0


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_installs_and_runs_elsewhere(wheel, tmp_path):
    site = tmp_path / "site"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run(install, check=True, timeout=300)
    assert (site / "jaxsolve" / "py.typed").exists()
    environment = {**os.environ, "PYTHONPATH": str(site)}
    for program in (
        ["-c", "import jaxsolve, sys; assert jaxsolve.__file__.startswith(sys.argv[1])", str(site)],
        ["-m", "jaxsolve", "reproduce", "feedback-reference/layerwise_gram", "--out", str(tmp_path / "run")],
    ):
        subprocess.run([sys.executable, *program], check=True, env=environment, cwd=tmp_path, timeout=300)
    assert (tmp_path / "run" / "report.html").exists()
