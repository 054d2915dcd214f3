"""Running the selected rows: one simulation per configuration, one record per row."""

import math
import os
import time
import traceback
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import __version__, theories
from ..claims import Claim, Measure, Status
from ..evidence import Evaluation, Result, Verdict, evaluate, save_evidence
from ._records import SCHEMA, Folder, Record

SCALES = ("quick", "full")
"""Names of the two sizes of a run."""


@dataclass(frozen=True)
class Group:
    """Rows that read one run of one theory configuration."""

    name: str
    claims: tuple[Claim, ...]

    @cached_property
    def measure(self) -> Measure:
        """Theory configuration that the rows share."""
        measure = self.claims[0].measure
        assert measure is not None
        return measure

    @property
    def file(self) -> str:
        """Where the evidence is kept, below the folder of the run."""
        return f"data/{self.name}.npz"

    def key(self, seed: int) -> jax.Array:
        """Key of the run: it depends on the seed and the name of the group alone."""
        return jax.random.fold_in(jax.random.key(seed), zlib.crc32(self.name.encode()))


@dataclass(frozen=True)
class Outcome:
    """What a run of [`reproduce`][] did.

    ``records`` are those of the selected rows, in ledger order; ``broken`` names the groups whose theory raised, with
    the file that holds the traceback; ``notes`` are remarks on damaged files.
    """

    records: tuple[Record, ...]
    broken: Mapping[str, Path]
    notes: tuple[str, ...]


def groups(claims: Sequence[Claim]) -> list[Group]:
    """The measured rows among ``claims``, gathered by theory configuration, in order of first appearance."""
    gathered: dict[str, list[Claim]] = {}
    for claim in claims:
        if claim.measure is not None:
            gathered.setdefault(claim.group, []).append(claim)
    return [Group(name, tuple(members)) for name, members in gathered.items()]


def reproduce(
    claims: Sequence[Claim],
    directory: Path,
    *,
    scale: str = "quick",
    seed: int = 0,
    fresh: bool = False,
    progress: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> Outcome:
    """Measure rows, keeping one record per row and the evidence of each group in a folder.

    A row whose record is already there, from the same scale, seed, configuration, dtype and version, is not run
    again. A theory that raises breaks its own rows alone.

    Parameters
    ----------
    claims
        Rows to measure.
    directory
        Folder for ``records.jsonl`` and ``data/``.
    scale
        ``"quick"`` or ``"full"``: which configuration of each theory.
    seed
        Drives the keys of the runs, never the instances that the theories condition on.
    fresh
        Start anew in a folder that holds records.
    progress
        Called with the name of the group about to run, and how many of how many are done.

    Raises
    ------
    FolderError
        Where the folder cannot be used or stops taking data.
    """
    if scale not in SCALES:
        raise ValueError(f"scale is one of {', '.join(SCALES)}; got {scale!r}.")
    broken: dict[str, Path] = {}
    with Folder(directory, seed=seed, version=__version__, fresh=fresh) as folder:
        plans = {claim.id: _plan(claim, scale, seed) for claim in claims}
        waiting = [
            group for group in groups(claims) if not all(folder.reusable(plans[claim.id]) for claim in group.claims)
        ]
        stale = [claim.id for group in waiting for claim in group.claims]
        unmeasured = [claim for claim in claims if claim.measure is None and not folder.reusable(plans[claim.id])]
        folder.forget([*stale, *(claim.id for claim in unmeasured)])
        for claim in unmeasured:
            folder.append(plans[claim.id])
        for done, group in enumerate(waiting):
            progress(group.name, done, len(waiting))
            try:
                _run_group(group, folder, plans, scale, seed)
            except OSError as error:
                raise folder.unwritable(error) from error
            except _TheoryBroke as error:
                broken[group.name] = _keep_traceback(folder, group, plans, error)
        progress("", len(waiting), len(waiting))
        return Outcome(tuple(folder.records[claim.id] for claim in claims), broken, tuple(folder.notes))


class _TheoryBroke(Exception):
    def __init__(self, error: Exception):
        super().__init__(f"{type(error).__name__}: {error}")
        self.told = "".join(traceback.format_exception(error))


def _plan(claim: Claim, scale: str, seed: int) -> Record:
    """The record of a row before anything is measured."""
    device = jax.devices()[0]
    return {
        "schema": SCHEMA,
        "id": claim.id,
        "group": claim.group,
        "scale": scale,
        "source": claim.document,
        "where": claim.where,
        "kind": claim.kind.value,
        "statement": claim.statement,
        "quoted": claim.quoted,
        "predicted": None,
        "measured": None,
        "discrepancy": None,
        "resolution": None,
        "verdict_predicted": Result.NOT_RUN.value,
        "verdict_quoted": Result.NOT_RUN.value if claim.quoted else None,
        "expected": expected(claim, scale),
        "reason": claim.reason,
        "fidelity": claim.fidelity.value,
        "status": claim.status.value,
        "covers": list(claim.covers),
        "seconds": None,
        "dtype": "float64" if jnp.zeros(()).dtype == jnp.float64 else "float32",
        "device": f"{device.platform}:{device.device_kind}",
        "jax": jax.__version__,
        "version": __version__,
        "config": configuration(claim),
        "seed": seed,
        "data": None,
        "message": "",
    }


def expected(claim: Claim, scale: str = "full") -> dict[str, str | None]:
    """The verdicts that a row expects; null for the printed number where the row holds nothing against it.

    At the quick scale a printed number that needs the full scale is expected not to be run.
    """
    if claim.measure is None:
        return {"predicted": None, "quoted": None}
    quoted = None
    if claim.measure.rule is not None:
        quoted = (claim.expected_quoted if _compared(claim.measure, scale) else Result.NOT_RUN).value
    return {"predicted": claim.expected_predicted.value, "quoted": quoted}


def _compared(measure: Measure, scale: str) -> bool:
    """Whether the printed number is held against ours at this scale."""
    return measure.rule is not None and (scale == "full" or not measure.full_scale_only)


def configuration(claim: Claim) -> dict[str, Any] | None:
    """What a row measures, as plain data: theory, options, observable, reading and rule."""
    measure = claim.measure
    if measure is None:
        return None
    return {
        "theory": claim.measured_by,
        "configuration": measure.configuration,
        "options": dict(measure.options),
        "observable": measure.observable,
        "reading": _plain(measure.reading),
        "rule": None if measure.rule is None else _plain(measure.rule),
        "quoted_side": measure.quoted_side,
        "full_scale_only": measure.full_scale_only,
    }


def _plain(module: eqx.Module) -> dict[str, Any]:
    return {"name": type(module).__name__, **{field: getattr(module, field) for field in module.__dataclass_fields__}}


def _run_group(group: Group, folder: Folder, plans: Mapping[str, Record], scale: str, seed: int) -> None:
    started = time.perf_counter()
    evaluation = _evaluate(group, scale, seed)
    seconds = round(time.perf_counter() - started, 3)
    digest = save_evidence(folder.path / group.file, np.asarray(evaluation.grid), evaluation.pairs)
    for claim in group.claims:
        record = {**plans[claim.id], **_measured(claim, evaluation, scale)}
        record |= {"seconds": seconds, "data": {"file": group.file, "sha256": digest}}
        folder.append(record)


def _evaluate(group: Group, scale: str, seed: int) -> Evaluation:
    try:
        theory = theories.load(group.claims[0].measured_by)
        build = theory.quick if scale == "quick" else theory.full
        return evaluate(build(**group.measure.options), key=group.key(seed))
    except Exception as error:
        raise _TheoryBroke(error) from error


def _measured(claim: Claim, evaluation: Evaluation, scale: str) -> Record:
    measure = claim.measure
    assert measure is not None
    try:
        read = measure.reading(evaluation, measure.observable)
        verdict = measure.reading.verdict(evaluation, measure.observable)
        quoted = None
        if measure.rule is not None and not _compared(measure, scale):
            quoted = Verdict(Result.NOT_RUN, math.nan, math.nan, "needs the full scale")
        elif measure.rule is not None:
            ours = read.measured if measure.quoted_side == "measured" else read.predicted
            quoted = measure.rule(ours, claim.quoted)
    except Exception as error:
        raise _TheoryBroke(error) from error
    return {
        "predicted": read.predicted,
        "measured": read.measured,
        "discrepancy": verdict.discrepancy,
        "resolution": verdict.resolution,
        "verdict_predicted": verdict.result.value,
        "verdict_quoted": None if quoted is None else quoted.result.value,
        "message": _message(verdict, quoted),
    }


def _message(verdict: Verdict, quoted: Verdict | None) -> str:
    return verdict.message if quoted is None else f"{verdict.message}. Printed: {quoted.message}"


def _keep_traceback(folder: Folder, group: Group, plans: Mapping[str, Record], error: _TheoryBroke) -> Path:
    path = folder.path / "tracebacks" / f"{group.name.replace('/', '--')}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(error.told)
    message = f"the theory broke: {error}; see {os.path.relpath(path, folder.path)}"
    for claim in group.claims:
        folder.append({**plans[claim.id], "message": message})
    return path


def needs_full_scale(record: Mapping[str, Any]) -> bool:
    """Whether a row was measured but its printed number not compared, because this scale is too small for it."""
    return record["data"] is not None and record["verdict_quoted"] == Result.NOT_RUN.value


def outcome(record: Mapping[str, Any]) -> str:
    """How a record counts: ``agree``, ``finding``, ``unexpected``, ``broken``, or the status of a row not measured.

    ``agree`` and ``finding`` are as expected; a finding expects a verdict other than agreement. A printed number that
    is not compared at this scale counts neither way.
    """
    if record["status"] != Status.MEASURED.value:
        return str(record["status"])
    wanted = record["expected"]
    if record["data"] is None:
        return "broken"
    if (record["verdict_predicted"], record["verdict_quoted"]) != (wanted["predicted"], wanted["quoted"]):
        return "unexpected"
    return "agree" if {wanted["predicted"], wanted["quoted"]} <= {"agrees", "not_run", None} else "finding"
