"""The records of a folder: one JSON line per row, kept through kills, damage and full disks."""

import errno
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .._files import atomic_write, sha256

SCHEMA = 1
"""Version of the record format."""

KEYS = [
    "schema",
    "id",
    "group",
    "scale",
    "source",
    "where",
    "kind",
    "statement",
    "quoted",
    "predicted",
    "measured",
    "discrepancy",
    "resolution",
    "verdict_predicted",
    "verdict_quoted",
    "expected",
    "reason",
    "fidelity",
    "status",
    "covers",
    "seconds",
    "dtype",
    "device",
    "jax",
    "version",
    "config",
    "seed",
    "data",
    "message",
]
"""Keys of a record, in the order in which they are written."""

RECORDS = "records.jsonl"
DAMAGED = "records.damaged.jsonl"
LOCK = ".lock"

_SAME = ("schema", "id", "scale", "seed", "config", "dtype", "version")

Record = dict[str, Any]


class FolderError(Exception):
    """The folder of a run cannot be used as asked; the message says why and what to do."""


def finite(record: Mapping[str, Any]) -> Record:
    """A record in which numbers that are not finite are null, and named in ``message``."""
    clean, lost = {}, []
    for key in KEYS:
        value = record[key]
        if isinstance(value, float) and not math.isfinite(value):
            lost.append(f"{key} is {value}")
            value = None
        clean[key] = value
    if lost:
        clean["message"] = "; ".join(filter(None, [clean["message"], *lost]))
    return clean


class Folder:
    """A folder that one run writes to.

    Opening it takes an operating-system lock that dies with the process, reads the records that are there, sets
    damaged lines aside in ``records.damaged.jsonl``, and proves that the folder can be written to.

    Parameters
    ----------
    path
        Made where it does not exist.
    seed, version
        Of the run. A folder with records of another seed or version is refused unless ``fresh``.
    fresh
        Forget the records that are there.

    Raises
    ------
    FolderError
        Where the folder cannot be written to, another run holds it, or its records belong to another run.
    """

    def __init__(self, path: Path, *, seed: int, version: str, fresh: bool = False):
        self.path = path
        self.notes: list[str] = []
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = open(path / LOCK, "w")  # noqa: SIM115 - held, and with it the lock, until close
        except OSError as error:
            raise FolderError(f"Cannot write to {path}: {error.strerror}. Choose another folder with --out.") from error
        try:
            _lock_file(self._lock)
        except OSError as error:
            self._lock.close()
            raise FolderError(
                f"Another run is writing to the same folder, {path}. Wait for it to end or choose another with --out."
            ) from error
        try:
            self.records = {} if fresh else self._read(seed, version)
            self._rewrite()
        except OSError as error:
            self.close()
            raise FolderError(f"Cannot write to {path}: {error.strerror}. Choose another folder with --out.") from error
        except FolderError:
            self.close()
            raise

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Give the folder free."""
        self._lock.close()

    @property
    def _file(self) -> Path:
        return self.path / RECORDS

    def _read(self, seed: int, version: str) -> dict[str, Record]:
        if not self._file.exists():
            return {}
        good, damaged = read_lines(self._file.read_bytes())
        if damaged:
            with open(self.path / DAMAGED, "ab") as aside:
                aside.writelines(line + b"\n" for _, line in damaged)
            lines = ", ".join(str(number) for number, _ in damaged)
            self.notes.append(f"{self._file}: line {lines} was damaged and is kept in {DAMAGED}; its rows run again.")
        for record in good.values():
            if record["seed"] != seed or record["version"] != version:
                raise FolderError(
                    f"{self.path} holds a run with seed {record['seed']} and version {record['version']}; this one has "
                    f"seed {seed} and version {version}. Choose another folder with --out, or replace it by --fresh."
                )
        return good

    def _rewrite(self) -> None:
        atomic_write(self._file, b"".join(_line(record) for record in self.records.values()))

    def reusable(self, planned: Mapping[str, Any]) -> bool:
        """Whether the record of a planned row is there, belongs to the same run and its data file is whole."""
        record = self.records.get(planned["id"])
        if record is None or any(record[key] != planned[key] for key in _SAME):
            return False
        if planned["config"] is None:
            return record["status"] == planned["status"]
        if record["data"] is None:
            return False
        path = self.path / record["data"]["file"]
        if sha256(path) != record["data"]["sha256"]:
            note = f"{path} is damaged or missing; its rows run again."
            if note not in self.notes:
                self.notes.append(note)
            return False
        return True

    def forget(self, ids: Iterable[str]) -> None:
        """Drop the records of some rows, on disk too."""
        dropped = [self.records.pop(row) for row in list(ids) if row in self.records]
        if dropped:
            self._rewrite()

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record as one line; a write that fails half-way is taken back.

        Raises
        ------
        FolderError
            Where the file system refuses, a full disk among others. The records written so far are kept.
        """
        clean = finite(record)
        try:
            with open(self._file, "ab", buffering=0) as file:
                start = file.seek(0, os.SEEK_END)
                line = _line(clean)
                try:
                    if file.write(line) != len(line):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(start)
                    raise
        except OSError as error:
            raise self.unwritable(error) from error
        self.records[clean["id"]] = clean

    def unwritable(self, error: OSError) -> FolderError:
        """What to tell the user when the folder stops taking data."""
        return FolderError(
            f"Cannot write to {self.path}: {error.strerror}. The records so far are kept; free some space and run the "
            "same command again to go on."
        )


def read_lines(content: bytes) -> tuple[dict[str, Record], list[tuple[int, bytes]]]:
    """The records of a file by id (the last line of an id counts), and the damaged lines with their numbers."""
    good: dict[str, Record] = {}
    damaged: list[tuple[int, bytes]] = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if not isinstance(record, dict) or list(record) != KEYS:
                raise ValueError("not a record")
        except ValueError:
            damaged.append((number, line))
            continue
        good[record["id"]] = record
    return good, damaged


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _lock_file(file) -> None:
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
