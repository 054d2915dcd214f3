"""Statistics of blocks of draws, merged on the host in an order that is fixed by their numbers alone."""

from typing import NamedTuple

import jax
import numpy as np


class Moments(NamedTuple):
    """Moments of several groups of draws, one row per group, in double precision.

    Attributes
    ----------
    count
        How many draws each group holds.
    mean
        `m = Σ x / n`.
    square
        `Σ (x − m)²`, elementwise.
    product
        `Σ (x − m)(x − m)ᵀ`, or ``None`` where covariances are not asked for.
    """

    count: np.ndarray
    mean: np.ndarray
    square: np.ndarray
    product: np.ndarray | None

    def rows(self, which: slice) -> "Moments":
        """Some of the groups."""
        return jax.tree.map(lambda field: field[which], self)


def merged(left: Moments, right: Moments) -> Moments:
    """Moments of the union of each group on the left with its partner on the right.

    With `n = n_a + n_b` and `d = m_b − m_a`: `m = m_a + d n_b / n`, and `d dᵀ n_a n_b / n` is added to the products
    (Chan, Golub and LeVeque, 1983). Elementwise operations of NumPy round each entry alike however many rows there
    are.
    """
    count = left.count + right.count
    whole = np.maximum(count, 1).astype(np.float64)
    share = (right.count / whole)[:, None]
    weight = (left.count * share[:, 0])[:, None]
    difference = right.mean - left.mean
    square = left.square + right.square + difference**2 * weight
    product = None
    if left.product is not None and right.product is not None:
        outer = difference[:, :, None] * difference[:, None, :]
        product = left.product + right.product + outer * weight[:, :, None]
    return Moments(count, left.mean + difference * share, square, product)


class Tree(NamedTuple):
    """Blocks merged as a binary counter adds: two neighbours of one level make one group of the next.

    Which groups are merged depends on the numbers of the blocks alone, not on how many arrive at a time. After `2^k`
    blocks there is one group.

    Attributes
    ----------
    levels
        At level `k` one group of `2^k` blocks, or ``None``.
    """

    levels: tuple[Moments | None, ...] = ()

    def with_blocks(self, blocks: Moments) -> "Tree":
        """The tree with the next blocks, one row each."""
        levels, level = [], 0
        while len(blocks.count) or level < len(self.levels):
            waiting = self.levels[level] if level < len(self.levels) else None
            if waiting is not None:
                blocks = jax.tree.map(lambda *fields: np.concatenate(fields), waiting, blocks)
            paired = len(blocks.count) // 2 * 2
            levels.append(blocks.rows(slice(paired, None)) if paired < len(blocks.count) else None)
            blocks = merged(blocks.rows(slice(0, paired, 2)), blocks.rows(slice(1, paired, 2)))
            level += 1
        return Tree(tuple(levels))

    def total(self) -> Moments:
        """Moments of all draws: the groups that wait, merged from the last to the first. One row."""
        total = None
        for group in self.levels:
            if group is not None:
                total = group if total is None else merged(group, total)
        assert total is not None
        return total
