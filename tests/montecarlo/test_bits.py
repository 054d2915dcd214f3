"""The same numbers to the last bit: chunks, devices, processes, kills."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from . import program

ROOT = Path(__file__).parents[2]
TIMEOUT = 240


def start(task: str, *arguments: str, devices: int = 1, pause: str = "0") -> subprocess.Popen:
    flags = f"--xla_force_host_platform_device_count={devices}"
    return subprocess.Popen(
        [sys.executable, "-m", "tests.montecarlo.program", task, *arguments],
        cwd=ROOT,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", program.PAUSE: pause},
        stdout=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen) -> str:
    out, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    return out


@pytest.fixture(scope="module")
def whole():
    return program.run()


def test_the_chunk_changes_no_bit(whole):
    for chunk in (1, 2, 7, 26):
        assert program.digest(program.run(chunk=chunk)) == program.digest(whole)


def test_other_blocks_change_rounding_alone(whole):
    for block in (1, 256):
        found = program.run(block=block)
        for name in ("mean", "variance", "covariance", "values"):
            for one, other in zip(*(jax.tree.leaves(getattr(run, name)) for run in (found, whole)), strict=True):
                assert np.allclose(one, other, rtol=1e-12, atol=1e-15), (block, name)


def test_devices_change_no_bit(whole):
    stopped = program.run(standard_error=program.STOP)
    assert stopped.count in (64, 128)
    lines = output(start("chunks_and_devices", devices=8)).splitlines()
    assert len(lines) == 6
    assert {line.split()[-1] for line in lines[:-1]} == {program.digest(whole)}
    assert lines[-1] == f"8 stopped at {stopped.count} {program.digest(stopped)}"


def test_two_processes_change_no_bit(whole, tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    file = str(tmp_path / "run.npz")
    pair = [start("one_of_two", port, str(process), file, devices=2) for process in range(2)]
    try:
        assert [output(process).strip().splitlines()[-1] for process in pair] == [
            f"4 devices {program.digest(whole)}"
        ] * 2
    finally:
        for process in pair:
            process.kill()
    assert program.digest(program.run(checkpoint=file)) == program.digest(whole)


def test_three_kills_change_no_bit(tmp_path):
    """Each time at a random moment after the file has moved on."""
    file, moments = tmp_path / "run.npz", random.Random(5)
    seen = 0
    for _ in range(3):
        process = start("until_killed", str(file), pause="0.02")
        deadline = time.monotonic() + TIMEOUT
        while (done := blocks_in(file)) <= seen:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.4 * moments.random())
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        seen = max(done, blocks_in(file))
        assert 0 < seen < 26
    found = program.run(program.slow, checkpoint=file)
    assert program.digest(found) == program.digest(program.run(program.slow))
    assert [path.name for path in tmp_path.glob("*.npz")] == ["run.npz"]


def blocks_in(file: Path) -> int:
    import json

    try:
        with np.load(file) as archive:
            return json.loads(archive["header"].tobytes())["blocks"]
    except FileNotFoundError:
        return 0
