"""Every notebook is stored without outputs and runs from top to bottom."""

import shutil
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest
from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpec

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


class _ThisPython(KernelManager):
    """Kernels of the running interpreter, whatever kernels are installed."""

    @property
    def kernel_spec(self):
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stripped_and_has_prose(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert path.stat().st_size < 100_000
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    assert any("assert " in cell.source for cell in code)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    shutil.copy(path, tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    notebook = nbformat.read(tmp_path / path.name, as_version=4)
    manager = _ThisPython()
    client = nbclient.NotebookClient(notebook, timeout=300, km=manager, resources={"metadata": {"path": str(tmp_path)}})
    try:
        client.execute()
    finally:
        manager.shutdown_kernel(now=True)
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
