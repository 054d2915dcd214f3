"""The half of the benchmark that is about correctness, at small sizes, and a run of the whole."""

import json

import pytest

from benchmarks import erosion

SMALL = erosion.Case(examples=6, features=5, outputs=2, draws=64)


def test_short_forms_stop_the_benchmark_where_they_differ(monkeypatch):
    monkeypatch.setattr(erosion, "WIDTH", 8)
    honest = erosion.TwoLayerForm.of
    monkeypatch.setattr(
        erosion.TwoLayerForm, "of", lambda form: erosion.jax.tree.map(lambda leaf: leaf * (1 + 1e-9), honest(form))
    )
    with pytest.raises(AssertionError, match="tensor, chunks of 64: largest difference"):
        erosion.check(SMALL)


def test_a_run_writes_every_candidate_and_every_target(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(erosion, "WIDTH", 8)
    monkeypatch.setattr(erosion, "CASES", (SMALL,))
    assert erosion.main(["--quick", "--out", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    names = {row["candidate"] for row in found["rows"] if "candidate" in row}
    assert names == {
        "backward, all draws at once",
        "backward, chunks of 8",
        "fast, chunks of 8",
        "tensor, chunks of 64",
        "backward, drawing",
        "conditional, drawing",
    }
    assert all(row["error"] is None or row["error"] <= 1e-13 for row in found["rows"] if "error" in row)
    assert len([row for row in found["rows"] if "check" in row]) == 3
    assert {row["verdict"] for row in found["targets"]} <= {"met", "missed", "undecided"}
    assert len(found["targets"]) == 3
    assert "microseconds a draw" in capsys.readouterr().out
