"""The half of the benchmark that is about correctness, at small sizes; its judgement; and a run of the whole."""

import json

import jax.numpy as jnp
import pytest

from benchmarks import draws


@pytest.fixture(scope="module")
def erosion():
    return draws.problem((5, 8, 6, 3), 12)


def test_all_candidates_agree_on_the_same_draws(erosion):
    assert set(draws.check(erosion, 203)) == {draws.BLOCKS, draws.ENGINE}


def test_a_wrong_variance_stops_the_benchmark(erosion, monkeypatch):
    honest = draws.in_blocks

    def biased(erosion, *, count):
        mean, variance = honest(erosion, count=count)
        return mean, variance * (count - 1) / count

    monkeypatch.setattr(draws, "in_blocks", biased)
    with pytest.raises(AssertionError, match="blocks of 8: relative error"):
        draws.check(erosion, 203)


def test_a_wrong_mean_stops_the_benchmark(erosion, monkeypatch):
    share = erosion.hidden_share()
    monkeypatch.setattr(draws.Erosion, "hidden_share", lambda self: 1 - share)
    with pytest.raises(AssertionError, match="standard errors from the hidden share"):
        draws.check(erosion, 203)


def test_draws_that_do_not_spread_stop_the_benchmark(erosion, monkeypatch):
    monkeypatch.setattr(draws, "vectorised", lambda erosion, count: (jnp.array(0.5), jnp.array(0.0)))
    with pytest.raises(AssertionError, match="do not spread"):
        draws.check(erosion, 203)


def test_a_run_writes_every_candidate_and_every_target(monkeypatch, tmp_path, capsys, erosion):
    monkeypatch.setattr(draws, "problem", lambda: erosion)
    monkeypatch.setattr(draws, "DRAWS", 203)
    monkeypatch.setattr(draws, "LONG", 2030)
    assert draws.main(["--quick", "--out", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    names = [(row["part"], row["candidate"]) for row in found["rows"]]
    both = [draws.BLOCKS, draws.ENGINE]
    assert names == [("short", name) for name in (draws.VMAP, *both)] + [("long", name) for name in both]
    assert len(found["targets"]) == 4
    assert {row["verdict"] for row in found["targets"]} <= {"met", "missed", "undecided"}
    assert "times faster" in capsys.readouterr().out
