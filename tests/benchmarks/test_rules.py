"""The half of the benchmark that is about correctness: against the textbook and, where there is one, BioTorch."""

import json
import os
import sys

import numpy as np
import pytest

from benchmarks import rules
from benchmarks.rules import Case

PYTHON = os.environ.get("BIOTORCH_PYTHON", sys.executable)
"""Name an interpreter that has BioTorch to run what else is skipped."""

DENSE = Case(6, (5,), (), (7, 4), 3, "float64")
CONVOLUTIONAL = Case(4, (1, 6, 6), (3, 4), (5,), 3, "float32")


def textbook(found, mode, matrices):
    """Gradients of a dense rectifier network by the formulas of the papers, in plain NumPy."""
    weights, biases = (
        [np.asarray(array) for array in arrays] for arrays in (found.network.weights, found.network.biases)
    )
    hidden, before = [found.inputs], []
    for weight, bias in zip(weights, biases, strict=True):
        before.append(hidden[-1] @ weight.T + bias)
        hidden.append(np.maximum(before[-1], 0))
    top = error = (before[-1] - found.targets) / len(found.inputs)
    gradients = {}
    for index in reversed(range(len(weights))):
        gradients[f"{mode}_weight_{index}"], gradients[f"{mode}_bias_{index}"] = (
            error.T @ hidden[index],
            error.sum(axis=0),
        )
        if index:
            error = (top if mode == "dfa" else error) @ matrices[index - 1] * (before[index - 1] > 0)
    return gradients


def stand_in(found):
    """What BioTorch would give, with magnitudes of our own."""
    random, peer = np.random.default_rng(5), {}
    signs = [np.sign(weight) for weight in found.network.weights[1:]]
    for mode in rules.MODES:
        for number in range(2):
            if mode == "usf":
                matrices = [0.3 * sign for sign in signs]
            elif mode == "brsf":
                matrices = [random.uniform(0.1, 1, sign.shape) * sign for sign in signs]
            else:
                matrices = found.feedback[mode]
            peer |= {f"{mode}_matrix_{number}_{index}": matrix for index, matrix in enumerate(matrices, start=1)}
        used = [matrix * sign for matrix, sign in zip(matrices, signs, strict=True)] if mode == "frsf" else matrices
        peer |= textbook(found, mode, used)
    return peer


def test_the_rules_are_those_of_the_textbook():
    found = rules.problem(DENSE)
    errors = rules.compare(DENSE, found, stand_in(found))
    assert set(errors) == set(rules.MODES)
    assert max(max(layers) for layers in errors.values()) < 1e-14


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("fa_weight_0", "FA, layer 1: relative difference"),
        ("dfa_bias_1", "DFA, layer 2: relative difference"),
        ("brsf_matrix_0_1", "brSF: signs"),
        ("frsf_matrix_0_2", "frSF, layer 3: matrices of two steps"),
    ],
)
def test_what_differs_stops_the_benchmark(entry, message):
    found = rules.problem(DENSE)
    peer = stand_in(found)
    spoiled = -peer[entry] if "matrix" in entry else peer[entry] * (1 + 1e-9)
    with pytest.raises(AssertionError, match=message):
        rules.compare(DENSE, found, peer | {entry: spoiled})


@pytest.mark.parametrize("case", [DENSE, CONVOLUTIONAL], ids=["dense", "convolutional"])
def test_biotorch_agrees(case):
    found = rules.problem(case)
    peer = rules.run_biotorch(found, 0, PYTHON)
    if peer["reason"] is not None:
        pytest.skip(peer["reason"])
    errors = rules.compare(case, found, peer["arrays"])
    assert {len(layers) for layers in errors.values()} == {len(found.network.weights)}


def test_an_environment_that_is_missing_is_a_row_with_a_reason(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(rules, "CASES", (DENSE, CONVOLUTIONAL))
    assert rules.main(["--quick", "--out", str(tmp_path / "found.json")]) == 0
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert [row["reason"] for row in rows] == ["no environment was named"] * 2
    assert "BioTorch: no environment was named" in capsys.readouterr().out


def test_a_run_writes_every_rule_or_the_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(rules, "CASES", (CONVOLUTIONAL,))
    assert rules.main(["--rounds", "2", "--biotorch", PYTHON, "--out", str(tmp_path / "found.json")]) == 0
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    if rows[0]["reason"] is not None:
        assert "torch" in rows[0]["reason"]
        return
    assert [row["rule"] for row in rows] == list(rules.MODES.values())
    assert all(row["ratio"] > 0 and max(row["layer_differences"]) <= 1e-5 for row in rows)
