"""A folder as a run leaves it: evidence of every kind and the records of some rows."""

from pathlib import Path
from typing import Any

import numpy as np

from jaxsolve.evidence import save_evidence
from jaxsolve.reproduce import KEYS

from .example_pairs import examples

NASTY = 'a < b & "c" <script>alert(1)</script> with `code`'


def record(name: str, **fields: Any) -> dict[str, Any]:
    """A record of a row named ``<theory>/<what>``, not measured unless ``fields`` say so."""
    theory = name.split("/")[0]
    whole: dict[str, Any] = {
        "schema": 1,
        "id": f"doc/{name}",
        "group": f"doc/{theory}/default",
        "scale": "quick",
        "source": "doc",
        "where": "section 1",
        "kind": "population",
        "statement": f"what {name} says",
        "quoted": "",
        "predicted": None,
        "measured": None,
        "discrepancy": None,
        "resolution": None,
        "verdict_predicted": "not_run",
        "verdict_quoted": None,
        "expected": {"predicted": None, "quoted": None},
        "reason": "",
        "fidelity": "same_setting",
        "status": "not_attempted",
        "covers": [],
        "seconds": None,
        "dtype": "float64",
        "device": "cpu:cpu",
        "jax": "0.10.2",
        "version": "0.1.0",
        "config": None,
        "seed": 0,
        "data": None,
        "message": "",
    } | fields
    assert list(whole) == KEYS
    return whole


def measured(
    name: str, kind: str, data: dict | None, *, reading: dict | None = None, quoted: str = "", **fields: Any
) -> dict[str, Any]:
    """The record of a measured row that agrees, as far as ``fields`` do not say otherwise."""
    config = {
        "theory": name.split("/")[0],
        "configuration": "default",
        "options": {},
        "observable": "loss",
        "reading": reading or {"name": "Discrepancy"},
        "rule": {"name": "Within", "relative": 0.1, "absolute": 0.0} if quoted else None,
        "quoted_side": "measured",
    }
    agreed = "agrees" if quoted else None
    return record(
        name,
        **{
            "kind": kind,
            "quoted": quoted,
            "predicted": 1.0,
            "measured": 1.0001,
            "discrepancy": 1e-4,
            "resolution": 2e-3,
            "verdict_predicted": "agrees",
            "verdict_quoted": agreed,
            "expected": {"predicted": "agrees", "quoted": agreed},
            "status": "measured",
            "seconds": 1.5,
            "config": config,
            "data": data,
            "message": "largest deviation 1.00 of 4.00",
        }
        | fields,
    )


def write_run(directory: Path) -> list[dict[str, Any]]:
    """Evidence of every kind below ``directory``; records with a finding, an unexpected verdict and a broken row."""
    records, stored = [], {}
    for name, example in examples().items():
        file = f"data/doc/{name}/default.npz"
        pairs = {"loss": example.pair, "other": example.pair}
        stored[name] = {"file": file, "sha256": save_evidence(directory / file, np.asarray(example.grid), pairs)}
        records.append(measured(f"{name}/first", example.rule.kind.value, stored[name]))
    curve = {"name": "CurveValue", "at": 4.0}
    finding = {"verdict_quoted": "disagrees", "expected": {"predicted": "agrees", "quoted": "disagrees"}}
    records += [
        measured("population/printed", "population", stored["population"], reading=curve, quoted="0.30-0.40"),
        measured(
            "population/found",
            "population",
            stored["population"],
            reading=curve,
            quoted="5e-2",
            reason="The source divides twice.",
            message="largest deviation 1.00 of 4.00. Printed: 0.3 against 0.05",
            **finding,
        ),
        measured("limit/odd", "limit", stored["limit"], verdict_predicted="inconclusive", statement=NASTY),
        measured(
            "broken/row", "law", None, verdict_predicted="not_run", message="the theory broke: ValueError: <none>"
        ),
        record("later/open", statement=NASTY),
        record("later/gone", status="retired", reason="taken back on page 3"),
    ]
    return records
