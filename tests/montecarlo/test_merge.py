"""Merging moments: the whole from the parts, whatever arrives together."""

import itertools

import numpy as np
import pytest

from jaxsolve._montecarlo._merge import Moments, Tree, merged


def moments(groups, covariance=True):
    """Of each group, by the definition."""
    means = [np.mean(group, axis=0) if len(group) else np.zeros(3) for group in groups]
    centred = [group - mean for group, mean in zip(groups, means, strict=True)]
    return Moments(
        np.array([len(group) for group in groups]),
        np.array(means),
        np.array([np.sum(part**2, axis=0) for part in centred]),
        np.array([part.T @ part for part in centred]) if covariance else None,
    )


def draws(number):
    """A small spread on a large mean, in groups of 0 to 5."""
    random = np.random.default_rng(number)
    return [1e6 + random.standard_normal((random.integers(0, 6), 3)) for _ in range(number)]


@pytest.mark.parametrize("number", [1, 2, 7, 64, 100])
def test_the_total_is_that_of_all_draws(number):
    groups = draws(number)
    total = Tree().with_blocks(moments(groups)).total()
    expected = moments([np.concatenate(groups)])
    assert total.count[0] == expected.count[0]
    assert np.allclose(total.mean, expected.mean, rtol=8 * 2.3e-16, atol=0)  # a rounding error per level
    assert np.allclose(total.square, expected.square, rtol=1e-9, atol=0)
    assert total.product is not None
    assert expected.product is not None
    assert np.allclose(total.product, expected.product, rtol=1e-9, atol=1e-9 * expected.square.max())


def test_sums_of_squares_would_fail_here():
    """The test above could see it: the textbook formula loses these digits."""
    everything = np.concatenate(draws(100))
    naive = np.sum(everything**2, axis=0) - len(everything) * np.mean(everything, axis=0) ** 2
    assert not np.allclose(naive, moments([everything]).square, rtol=1e-9, atol=0)


@pytest.mark.parametrize("covariance", [False, True])
def test_what_arrives_together_changes_no_bit(covariance):
    blocks = moments(draws(77), covariance)
    at_once = Tree().with_blocks(blocks)
    random = np.random.default_rng(0)
    for _ in range(5):
        tree, ends = Tree(), [0, *sorted(random.integers(0, 77, random.integers(1, 9))), 77]
        for begin, end in itertools.pairwise(ends):
            tree = tree.with_blocks(blocks.rows(slice(begin, end)))
        for one, other in zip(tree.total(), at_once.total(), strict=True):
            assert (one is None) == (other is None)
            assert one is None or other is None or np.array_equal(one, other)
        assert [group is None for group in tree.levels] == [group is None for group in at_once.levels]


def test_levels_are_the_binary_digits_of_the_number_of_blocks():
    for number in (1, 6, 32, 77):
        levels = Tree().with_blocks(moments(draws(number))).levels
        digits = sum(1 << level for level, group in enumerate(levels) if group is not None)
        assert digits == number


def test_two_empty_groups_make_an_empty_one():
    empty = moments([np.zeros((0, 3))])
    assert all(not np.any(field) for field in merged(empty, empty))
