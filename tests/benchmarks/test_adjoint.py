"""The half of the benchmark that is about correctness, at small sizes; its judgement; and a run of the whole."""

import json

import numpy as np
import pytest

from benchmarks import adjoint
from jaxsolve.solver import METHODS


@pytest.mark.parametrize("case", [(5, 6, 12), (3, 4, 100)])
def test_all_candidates_agree_on_the_same_arrays(case):
    errors = adjoint.check(*case)
    assert set(errors) == set(METHODS)


def test_a_wrong_gradient_stops_the_benchmark(monkeypatch):
    honest = adjoint.rollout

    def wrong(preconditioner, *arguments, depth, method):
        factor = 1 + 1e-9 if method == "panels" else 1
        return honest(factor * preconditioner, *arguments, depth=depth, method=method)

    monkeypatch.setattr(adjoint, "rollout", wrong)
    monkeypatch.setattr(adjoint, "METHODS", ("accumulate", "panels"))
    with pytest.raises(AssertionError, match="panels: relative error"):
        adjoint.check(4, 5, 12)


def test_a_converged_problem_stops_the_benchmark(monkeypatch):
    _, operators, *others = adjoint.problem(1, 4, 8)
    monkeypatch.setattr(adjoint, "problem", lambda *_: (np.linalg.inv(operators[0]), operators, *others))
    with pytest.raises(AssertionError, match="the loss"):
        adjoint.check(1, 4, 8)


def test_the_problem_is_symmetric_in_nothing():
    preconditioner, operators, *_ = adjoint.problem(3, 4, 8)
    for matrices in (preconditioner, operators):
        assert np.linalg.norm(matrices - np.swapaxes(matrices, -1, -2)) > 0.1 * np.linalg.norm(matrices)


def test_a_run_writes_every_candidate_and_every_target(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(adjoint, "CASES", ((2, 3, 4096),))
    monkeypatch.setattr(adjoint, "PRODUCT", 32)
    assert adjoint.main(["--quick", "--out", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    names = {row["candidate"] for row in found["rows"]}
    assert names == {adjoint.BASELINE, adjoint.TORCH, "gemm", *METHODS}
    assert {row["verdict"] for row in found["targets"]} <= {"met", "missed", "undecided"}
    assert len([row for row in found["targets"] if row["target"].startswith(("checkpoint", "doubling"))]) == 4
    assert "times faster" in capsys.readouterr().out
