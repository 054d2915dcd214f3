"""Records survive damage, kills, full disks and second runs."""

import errno
import json
import os

import pytest

from jaxsolve.reproduce import KEYS, RECORDS, Folder, FolderError, read_lines


def record(name="a/b/c", **changes):
    base = dict.fromkeys(KEYS)
    base |= {"schema": 1, "id": name, "scale": "quick", "seed": 0, "version": "1", "dtype": "float64"}
    base |= {"config": None, "status": "not_attempted", "message": ""}
    return base | changes


def open_folder(path, **changes):
    return Folder(path, **({"seed": 0, "version": "1"} | changes))


def lines(path):
    return [json.loads(line) for line in (path / RECORDS).read_bytes().splitlines()]


def test_one_line_per_record(tmp_path):
    with open_folder(tmp_path) as folder:
        folder.append(record("a/b/c"))
        folder.append(record("a/b/d", measured=0.5))
    assert [line["id"] for line in lines(tmp_path)] == ["a/b/c", "a/b/d"]
    assert list(lines(tmp_path)[0]) == KEYS


def test_numbers_that_are_not_finite_are_null_and_named(tmp_path):
    with open_folder(tmp_path) as folder:
        folder.append(record(discrepancy=float("inf"), resolution=float("nan"), message="why"))
    (line,) = lines(tmp_path)
    assert line["discrepancy"] is line["resolution"] is None
    assert line["message"] == "why; discrepancy is inf; resolution is nan"


def test_records_are_found_again(tmp_path):
    with open_folder(tmp_path) as folder:
        folder.append(record())
    with open_folder(tmp_path) as folder:
        assert folder.reusable(record())


@pytest.mark.parametrize(
    "changes", [{"schema": 2}, {"scale": "full"}, {"config": {"x": 1}}, {"dtype": "float32"}, {"status": "measured"}]
)
def test_a_record_of_another_run_is_not_reused(tmp_path, changes):
    with open_folder(tmp_path) as folder:
        folder.append(record())
        assert not folder.reusable(record(**changes))


@pytest.mark.parametrize("changes", [{"seed": 1}, {"version": "2"}])
def test_a_folder_of_another_seed_or_version_is_refused_unless_fresh(tmp_path, changes):
    with open_folder(tmp_path) as folder:
        folder.append(record())
    with pytest.raises(FolderError, match="--fresh"):
        open_folder(tmp_path, **changes)
    with open_folder(tmp_path, fresh=True, **changes) as folder:
        assert not folder.records


@pytest.mark.parametrize("damage", [b'{"schema": 1, "id": "x/y/z"', b"\x00\x00\x00", b"[1, 2]", b'{"id": "a"}'])
def test_a_damaged_line_is_named_and_kept_aside(tmp_path, damage):
    with open_folder(tmp_path) as folder:
        folder.append(record("a/b/c"))
        folder.append(record("a/b/d"))
    path = tmp_path / RECORDS
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + damage + b"\n" + second)
    with open_folder(tmp_path) as folder:
        assert set(folder.records) == {"a/b/c", "a/b/d"}
        assert "line 2" in folder.notes[0]
    assert (tmp_path / "records.damaged.jsonl").read_bytes() == damage + b"\n"
    assert len(lines(tmp_path)) == 2


def test_a_line_torn_by_a_kill_costs_that_line_alone(tmp_path):
    with open_folder(tmp_path) as folder:
        folder.append(record("a/b/c"))
        folder.append(record("a/b/d"))
    path = tmp_path / RECORDS
    path.write_bytes(path.read_bytes()[:-40])
    with open_folder(tmp_path) as folder:
        assert set(folder.records) == {"a/b/c"}


def test_a_damaged_data_file_is_named_and_not_reused(tmp_path):
    from jaxsolve._files import atomic_write

    digest = atomic_write(tmp_path / "data" / "g.npz", b"evidence")
    measured = record(config={"theory": "b"}, status="measured", data={"file": "data/g.npz", "sha256": digest})
    with open_folder(tmp_path) as folder:
        folder.append(measured)
        assert folder.reusable(measured)
        (tmp_path / "data" / "g.npz").write_bytes(b"evid")
        assert not folder.reusable(measured)
        assert "g.npz" in folder.notes[0]


def test_two_runs_in_one_folder_are_refused(tmp_path):
    with open_folder(tmp_path), pytest.raises(FolderError, match="same folder"):
        open_folder(tmp_path)
    with open_folder(tmp_path):
        pass


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(FolderError, match="file"):
            open_folder(path)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_full_disk_keeps_the_records_whole(tmp_path, monkeypatch):
    with open_folder(tmp_path) as folder:
        folder.append(record("a/b/c"))
        with monkeypatch.context() as patch:
            patch.setattr(
                os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device"))
            )
            with pytest.raises(FolderError, match="No space left"):
                folder.append(record("a/b/d"))
        assert [line["id"] for line in lines(tmp_path)] == ["a/b/c"]
        folder.append(record("a/b/d"))
    assert [line["id"] for line in lines(tmp_path)] == ["a/b/c", "a/b/d"]


def test_the_last_line_of_an_id_counts():
    both = b"".join(json.dumps(record(measured=value)).encode() + b"\n" for value in (1.0, 2.0))
    good, damaged = read_lines(both)
    assert good["a/b/c"]["measured"] == 2.0
    assert not damaged
