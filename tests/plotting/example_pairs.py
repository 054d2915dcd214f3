"""A pair and a rule for every kind of statement, made by hand."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from jaxsolve.evidence import (
    AbstractRule,
    BoundRule,
    Curve,
    IdentityRule,
    Law,
    LawRule,
    LimitRule,
    LocalRule,
    NullModelRule,
    Pair,
    PopulationRule,
    Samples,
    TransitionRule,
)


@dataclass(frozen=True)
class Example:
    """A pair, the rule that compares it and the effect that it must see."""

    pair: Pair
    rule: AbstractRule
    effect: float
    grid: np.ndarray


def curves(grid, predicted, measured, error=None) -> Pair:
    """A pair of curves from numbers."""
    grid, predicted, measured = (jnp.asarray(side, float) for side in (grid, predicted, measured))
    return Pair(Curve(grid, predicted), Curve(grid, measured, None if error is None else jnp.asarray(error, float)))


def examples() -> dict[str, Example]:
    """One agreeing example per kind, keyed by the kind; ``<kind>_many`` has entries along trailing axes."""
    random = np.random.default_rng(0)
    depths = np.arange(1.0, 21.0)
    sizes = 2.0 ** np.arange(3, 11)
    decay = np.exp(-0.3 * depths)
    rounding = decay * (1 + 2.0**-52 * random.integers(0, 6, depths.size))
    error = 0.02 * decay
    noisy = decay + error * random.standard_normal(depths.size)
    entries = decay[:, None] * (1 + np.arange(12.0))[None, :]
    contraction = np.exp(-0.35 * depths) * (1 + 0.3 * random.random((16, depths.size)))
    times = np.linspace(0, 40, 41)
    limit_error = 2.0 * sizes**-0.5 * np.exp(0.05 * random.standard_normal(sizes.size))
    widths = jnp.asarray([4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0])
    draws = random.standard_normal((3000, 6)) / np.sqrt(np.asarray(widths))

    def cdf(values):
        return norm.cdf(values * jnp.sqrt(widths)[None, :])

    law = Law(cdf, jnp.zeros(6), 1 / widths)
    return {
        "identity": Example(curves(depths, decay, rounding), IdentityRule(8.0), 1e-6, depths),
        "identity_many": Example(
            curves(depths, entries, np.stack([entries, entries * (1 + 2.0**-52)])), IdentityRule(64.0), 1e-6, depths
        ),
        "population": Example(curves(depths, decay, noisy, error), PopulationRule(), 0.5, depths),
        "population_many": Example(
            curves(depths, entries, entries + 0.02 * random.standard_normal(entries.shape), 0.02 + 0 * entries),
            PopulationRule(),
            0.5,
            depths,
        ),
        "law": Example(Pair(law, Samples(jnp.asarray(draws))), LawRule(), 0.05, np.asarray(widths)),
        "bound": Example(curves(depths, 1.5 * np.exp(-0.3 * depths), contraction), BoundRule(), 0.1, depths),
        "local": Example(curves(times, np.exp(-times / 10), 1 / (1 + times / 10)), LocalRule(0.05, 3.0), 0.05, times),
        "limit": Example(
            curves(sizes, np.ones_like(sizes), 1 + limit_error, 0.05 * limit_error), LimitRule(-0.5, 0.1), 0.1, sizes
        ),
        "transition": Example(
            curves([1, 2, 3, 4], [[9, 12], [17, 22], [26, 31], [33, 41]], [10, 20, 30, 40], [0.3, 0.4, 0.5, 0.6]),
            TransitionRule(),
            2.0,
            np.arange(1.0, 5.0),
        ),
        "null_model": Example(
            curves(depths, 5 * np.exp(0.1 * depths), 0.5 * np.ones_like(depths), 0.01 * np.ones_like(depths)),
            NullModelRule(3.0),
            0.5,
            depths,
        ),
    }
