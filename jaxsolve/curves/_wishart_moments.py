"""Isotropic Wishart tasks of any size: exact moments, and the exact second variation of the population loss."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import comb
from typing import NamedTuple


class SecondVariations(NamedTuple):
    """Second derivatives of the population loss at `P = p I`, from [`wishart_second_variations`][].

    Both are for a direction `X` without trace and with `‖X‖² = K`, any one of its kind: by invariance under rotations
    the value is the same for all.
    """

    gain: float
    """`p`."""
    symmetric: float
    """Along symmetric `X`."""
    antisymmetric: float
    """Along antisymmetric `X`."""


def wishart_trace_moment(orders: Sequence[int], *, size: int, freedom: int) -> Fraction:
    """`E[tr H^a tr H^b ⋯]` for isotropic real Wishart matrices, exact.

    `H = Z Zᵀ/n` with `Z` of shape `(K, n)` and independent standard normal entries. Gaussian integration by parts in
    the
    first factor gives, for any product `Q` of further traces,

        E[tr H^a Q] = (1 + (a−1)/n) E[tr H^{a−1} Q] + (1/n) Σ_{r=0}^{a−2} E[tr H^r tr H^{a−1−r} Q]
                      + (1/n) Σ_b 2 b E[tr H^{a+b−1} Q / tr H^b].

    Parameters
    ----------
    orders
        `a, b, …`, at least 0.
    size, freedom
        `K` and `n`, at least 1.

    Raises
    ------
    ValueError
        For numbers outside these ranges.

    >>> wishart_trace_moment([2], size=2, freedom=4)
    Fraction(7, 2)
    """
    if size < 1 or freedom < 1 or any(order < 0 for order in orders):
        raise ValueError(
            f"Orders are at least 0, size and degrees of freedom at least 1; got {list(orders)}, {size} and {freedom}."
        )
    return _moment(tuple(sorted(orders)), size, freedom)


def wishart_best_gain(*, size: int, freedom: int, depth: int) -> float:
    """The best multiple of the identity for isotropic Wishart tasks: `E tr[H (I − p H)^{2L−1}] = 0`, by bisection.

    It tends to `1/(1 + K/n)`.

    >>> round(wishart_best_gain(size=2, freedom=4, depth=1), 6), round(2 / 3.5, 6)
    (0.571429, 0.571429)
    """
    _check_depth(depth)
    low, high = 0.0, 1.0
    while high - low > 1e-16 * high and low < (middle := (low + high) / 2) < high:
        powers = _powers(Fraction(middle), 2 * depth - 1, 1)
        slope = sum(weight * wishart_trace_moment([k], size=size, freedom=freedom) for k, weight in powers.items())
        low, high = (middle, high) if slope > 0 else (low, middle)
    return (low + high) / 2


def wishart_second_variations(*, size: int, freedom: int, depth: int, gain: float | None = None) -> SecondVariations:
    """Whether `P = p I` is a minimum for isotropic Wishart tasks of any size, with `S = I`: exact, without sampling.

    For functions `F` and `G` of `H` invariance under rotations leaves two numbers, `E[F_li G_jm] = u δ_li δ_jm +
    v (δ_lj δ_im + δ_lm δ_ij)`, given by `E[tr F tr G] = u K² + 2 v K` and `E tr[F G] = u K + v (K² + K)`. With
    `M = I − p H` and `‖X‖² = K` the second variation along symmetric (`+`) or antisymmetric (`−`) matrices is

        Σ_{k≤2L−2} (L − |L−1−k|) (u ± v)[M^k, H² M^{2L−2−k}] + 2 Σ_{b≤L−2} (L−1−b) (v ± u)[H M^{2L−2−b}, H M^b].

    The terms `v` are of order `1/K`; without them it is `A ± B` of [`isotropic_wishart_hessian`][]. All is rational
    arithmetic until the last step, so that nothing cancels.

    Parameters
    ----------
    size, freedom
        `K`, at least 2, and `n`.
    depth
        `L`.
    gain
        `p`; by default the best one.

    Raises
    ------
    ValueError
        For numbers outside these ranges.

    >>> found = wishart_second_variations(size=8, freedom=32, depth=4)
    >>> found.symmetric > 0 > found.antisymmetric
    True
    """
    _check_depth(depth)
    if size < 2:
        raise ValueError(f"A direction without trace takes at least two unknowns; got {size}.")
    if gain is None:
        gain = wishart_best_gain(size=size, freedom=freedom, depth=depth)
    exact = Fraction(gain)

    def pair(first, second):
        """`u` and `v` of `H^a M^k` and `H^b M^l`, each given as `(k, a)`."""
        apart, together = Fraction(0), Fraction(0)
        for i, one in _powers(exact, *first).items():
            for j, other in _powers(exact, *second).items():
                apart += one * other * wishart_trace_moment([i, j], size=size, freedom=freedom)
                together += one * other * wishart_trace_moment([i + j], size=size, freedom=freedom)
        v = (size * together - apart) / (size * (size**2 + size - 2))
        return (apart - 2 * v * size) / size**2, v

    last = 2 * depth - 2
    own = [((depth - abs(depth - 1 - k)), pair((k, 0), (last - k, 2))) for k in range(last + 1)]
    cross = [(2 * (depth - 1 - b), pair((last - b, 1), (b, 1))) for b in range(depth - 1)]
    even = sum(n * u for n, (u, _) in own) + sum(n * v for n, (_, v) in cross)
    odd = sum(n * v for n, (_, v) in own) + sum(n * u for n, (u, _) in cross)
    return SecondVariations(gain, float(even + odd), float(even - odd))


@cache
def _moment(orders, size, freedom):
    if not orders:
        return Fraction(1)
    if not orders[0]:
        return size * _moment(orders[1:], size, freedom)
    order, others = orders[-1], orders[:-1]

    def further(*new, without=None):
        rest = list(others)
        if without is not None:
            del rest[without]
        return _moment(tuple(sorted([*new, *rest])), size, freedom)

    total = (freedom + order - 1) * further(order - 1)
    total += sum(further(r, order - 1 - r) for r in range(order - 1))
    total += sum(2 * b * further(order + b - 1, without=index) for index, b in enumerate(others))
    return Fraction(total) / freedom


def _powers(gain, exponent, order):
    """Coefficients of `H^order (1 − p H)^exponent`, by power of `H`."""
    return {order + k: comb(exponent, k) * (-gain) ** k for k in range(exponent + 1)}


def _check_depth(depth):
    if depth < 1:
        raise ValueError(f"Training of a preconditioner takes a depth of at least one step; got {depth!r}.")
