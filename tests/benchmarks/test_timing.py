"""The harness of the benchmarks."""

import doctest
import math

import numpy as np
import pytest

from benchmarks import _timing
from benchmarks._timing import Interval, Target, cpu_seconds, interval, ratio, verdict


def test_examples():
    assert doctest.testmod(_timing).failed == 0


@pytest.mark.parametrize("count", [5, 15, 16, 40])
def test_the_interval_holds_the_true_median_nine_times_of_ten(count):
    draws = np.random.default_rng(count).standard_exponential((20_000, count))
    found = [interval(row) for row in draws]
    inside = np.mean([one.low <= math.log(2) <= one.high for one in found])
    assert inside >= 0.89
    if count >= 15:
        assert inside <= 0.98


def test_few_rounds_give_their_range():
    assert interval([3.0, 1.0, 2.0]) == Interval(2.0, 1.0, 3.0)
    assert interval([2.0]) == Interval(2.0, 2.0, 2.0)


def test_a_drift_common_to_both_sides_leaves_the_ratio():
    drift = np.linspace(1, 3, 15)
    assert ratio(6 * drift, 3 * drift) == pytest.approx((2.0, 2.0, 2.0))


def test_every_candidate_takes_part_in_every_round_in_changing_order():
    calls = []
    seconds = cpu_seconds({name: lambda name=name: calls.append(name) for name in "abc"}, rounds=30, least=0.0)
    rounds = ["".join(calls[start : start + 3]) for start in range(3, len(calls), 3)]
    assert len(rounds) == 30
    assert {"".join(sorted(one)) for one in rounds} == {"abc"}
    assert len(set(rounds)) == 6
    assert {name: len(values) for name, values in seconds.items()} == {"a": 30, "b": 30, "c": 30}


def test_work_is_counted_and_waiting_is_not():
    import time

    def work():
        start = time.process_time()
        while time.process_time() - start < 0.02:
            pass

    seconds = cpu_seconds({"work": work, "wait": lambda: time.sleep(0.02)}, rounds=2, least=0.0)
    assert min(seconds["work"]) >= 0.02
    assert max(seconds["wait"]) < 0.01


@pytest.mark.parametrize(
    ("found", "expected"), [((0.9, 0.8, 1.5), "met"), ((1.5, 1.3, 2.0), "undecided"), ((1.6, 1.5, 2.0), "missed")]
)
def test_an_upper_bound_is_missed_only_by_the_whole_interval(found, expected):
    assert verdict(Target("time", 1.4, at_least=False), Interval(*found)) == expected
