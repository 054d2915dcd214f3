"""The half of the kernel benchmark that is about correctness, at small sizes, and a run of the whole."""

import json
import sys

import numpy as np
import pytest

from benchmarks import kernels
from benchmarks.kernels import Case


@pytest.mark.parametrize("case", [Case(6, 2, 3, 2, 5, over_jacobian=1.0), Case(5, 2, 4, 1, 300)])
def test_all_candidates_agree(case):
    found, _ = kernels.check(case)
    expected = {f"{form}, {rule}" for form in (kernels.BROADCAST, kernels.KERNEL) for rule in ("backprop", "feedback")}
    assert expected <= set(found)
    assert ("J J^T" in found) == bool(case.over_jacobian)


def test_a_wrong_kernel_stops_the_benchmark(monkeypatch):
    honest = kernels.tangent.kernel
    monkeypatch.setattr(kernels.tangent, "kernel", lambda *arguments, **options: 1.001 * honest(*arguments))
    with pytest.raises(AssertionError, match="jaxsolve, backprop is off by 1"):
        kernels.check(Case(6, 2, 3, 2, 5))


def test_operations_are_those_of_the_layerwise_identity():
    case = Case(64, 2, 16, 4, 128)
    assert case.operations == 2 * 2 * 512**2 * 64 + 2 * 128**2 * (16 + 64 + 64)


def test_an_environment_that_is_missing_is_a_row_with_a_reason():
    case = Case(6, 2, 3, 2, 5)
    assert kernels.run_neural_tangents(case, 3, None)["reason"] == "no environment was named"
    found = kernels.run_neural_tangents(case, 3, sys.executable)
    assert "neural_tangents" in found["reason"] or found["of_gemm"]


def test_a_run_writes_every_case_and_target(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(kernels, "CASES", (Case(8, 2, 3, 2, 20, over_jacobian=1.0),))
    monkeypatch.setattr(kernels, "PRODUCTS", ((64, 4),))
    monkeypatch.setattr(kernels, "PRODUCT", 32)
    assert kernels.main(["--quick", "--out", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    names = {row["target"] for row in found["targets"]}
    assert {"backprop over J J^T", "one linearisation over a new one at every step"} <= names
    assert all(np.isfinite(row["found"]).all() for row in found["targets"])
    assert "of gemm" in capsys.readouterr().out
