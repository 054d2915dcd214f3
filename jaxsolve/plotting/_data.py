"""What the figures show, as arrays: computed from a pair alone, without drawing."""

from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from .._numerics import machine_epsilon
from ..evidence import FAMILYWISE_LEVEL, BoundRule, Curve, Law, Pair, Samples

LINES = 4
"""Entries per grid point up to which each is a line of its own; more are drawn as their mean."""

SHOWN_POINTS = 400
"""Order statistics at which a distribution is drawn."""

Points: TypeAlias = Float[np.ndarray, " points"]
Lines: TypeAlias = Float[np.ndarray, "points lines"]


class Band(NamedTuple):
    """Both sides of a curve, and a band around the measured one.

    Attributes
    ----------
    grid
        Grid values.
    predicted, measured
        One column per line. The measured one is the mean over replicates.
    low, high
        Edges of the band; equal to ``measured`` where nothing is known about its spread.
    band
        What the band is; empty where there is none.
    entries
        How many entries a line stands for: 1, or all of them where they were more than four and their mean is shown.
    """

    grid: Points
    predicted: Lines
    measured: Lines
    low: Lines
    high: Lines
    band: str
    entries: int


class Distribution(NamedTuple):
    """A panel of predicted and empirical distribution functions at order statistics of the samples.

    Attributes
    ----------
    values
        Order statistics, one column per member of the panel.
    predicted
        Predicted probability `F(x)` at ``values``.
    below, upto
        Empirical probability just below and at ``values``: the two ends of each step.
    critical
        Largest distance that the Kolmogorov–Smirnov test accepts, shared among the panel.
    """

    values: Float[np.ndarray, "order panel"]
    predicted: Float[np.ndarray, "order panel"]
    below: Float[np.ndarray, "order panel"]
    upto: Float[np.ndarray, "order panel"]
    critical: float


class Standardised(NamedTuple):
    """Deviations in standard errors, one column per entry, and the critical value for all of them."""

    grid: Points
    deviation: Float[np.ndarray, "points entries"]
    critical: float


class Violations(NamedTuple):
    """How near each grid point comes to its bound.

    Attributes
    ----------
    grid
        Grid values.
    worst
        The largest over replicates and entries of `measured / bound`, or of `(measured − bound) / max |bound|` where
        a side has a sign; infinite for a value that is not a number, `-inf` where every bound is infinite.
    limit
        What ``worst`` must not exceed: 1 for the ratio, 0 for the difference.
    violated
        Whether the inequality fails somewhere at the grid point.
    """

    grid: Points
    worst: Points
    limit: float
    violated: Bool[np.ndarray, " points"]


class PowerLaw(NamedTuple):
    """The error against the size, and the straight line through it on logarithmic axes.

    Attributes
    ----------
    size, error
        Sizes, and `‖measured − predicted‖` at each.
    spread
        Norm of the standard errors; NaN where there are none.
    slope
        Least-squares slope of `log error` against `log size`; NaN with fewer than two positive errors.
    centre
        Geometric means of size and error: every fitted line passes through them.
    """

    size: Points
    error: Points
    spread: Points
    slope: float
    centre: tuple[float, float]


class Ratios(NamedTuple):
    """A ratio at each grid point, one column per entry; NaN where the ratio has no meaning."""

    grid: Points
    ratio: Float[np.ndarray, "points entries"]


def spans_decades(values: Float[np.ndarray, "..."]) -> bool:
    """Whether the finite numbers are positive and cover two decades or more: they belong on a logarithmic axis.

    >>> spans_decades(np.array([0.5, 60.0])), spans_decades(np.array([-0.5, 60.0]))
    (True, False)
    """
    finite = values[np.isfinite(values)]
    return bool(finite.size and finite.min() > 0 and finite.max() / finite.min() >= 100)


def logarithmic_grid(grid: Points) -> bool:
    """Whether a grid belongs on a logarithmic axis.

    It is positive, covers a factor of eight, and its steps are more even in the logarithm than in the number itself.

    >>> logarithmic_grid(np.array([8.0, 16.0, 32.0, 64.0])), logarithmic_grid(np.arange(1.0, 65.0))
    (True, False)
    """
    ordered = np.unique(grid)
    if ordered.size < 3 or ordered[0] <= 0 or ordered[-1] / ordered[0] < 8:
        return False
    return _unevenness(np.log(ordered)) < _unevenness(ordered)


def _unevenness(values: np.ndarray) -> float:
    steps = np.diff(values)
    return float(steps.std() / steps.mean())


def curve_band(pair: Pair) -> Band:
    """Both sides of a curve with a band: twice the standard error, or the range of the replicates.

    Up to four entries per grid point are kept as lines. Of more, the mean is taken on both sides, and the band is
    the range of the measured entries.
    """
    grid, predicted, measured, error = _curves(pair)
    mean, low, high = measured.mean(axis=0), measured.min(axis=0), measured.max(axis=0)
    band = f"range of {len(measured)} replicates" if len(measured) > 1 else ""
    if error is not None:
        low, high, band = mean - 2 * error, mean + 2 * error, "± 2 standard errors"
    entries = predicted.shape[1]
    if entries <= LINES:
        return Band(grid, predicted, mean, low, high, band, 1)
    return Band(
        grid,
        predicted.mean(axis=1, keepdims=True),
        mean.mean(axis=1, keepdims=True),
        measured.min(axis=(0, 2))[:, None],
        measured.max(axis=(0, 2))[:, None],
        f"range of {entries} entries",
        entries,
    )


def relative_differences(pair: Pair, *, relative_to: str = "point") -> Points:
    """`‖measured − predicted‖ / scale` at each grid point, the largest over the replicates.

    ``scale`` is the predicted norm at the point (``relative_to="point"``) or the largest on the curve (``"curve"``);
    the norm runs over all entries of a grid point. NaN where the scale is zero.
    """
    _, predicted, measured, _ = _curves(pair)
    size = np.abs(predicted).max(initial=0.0) or 1.0
    norms = np.linalg.norm(predicted / size, axis=1)
    difference = np.linalg.norm((measured - predicted) / size, axis=2).max(axis=0)
    scale = norms if relative_to == "point" else np.full_like(norms, norms.max())
    return np.divide(difference, scale, out=np.full_like(scale, np.nan), where=scale > 0)


def standardised_deviations(pair: Pair, *, level: float = FAMILYWISE_LEVEL) -> Standardised:
    """`(measured − predicted) / standard error` for every entry, with the two-sided critical value for all of them.

    The standard error is widened by the allowance for rounding, 64 machine epsilons of the largest prediction shared
    among the critical number of standard errors: an entry is accepted exactly where its deviation is at most
    ``critical``. NaN where the measurement has no standard error.
    """
    from scipy.stats import norm

    grid, predicted, measured, error = _curves(pair)
    critical = float(norm.isf(level / (2 * predicted.size)))
    if error is None:
        return Standardised(grid, np.full_like(predicted, np.nan), critical)
    assert isinstance(pair.predicted, Curve)
    rounding = 64 * machine_epsilon(pair.predicted.value.dtype) * (np.abs(predicted).max() or 1.0)
    return Standardised(grid, (measured.mean(axis=0) - predicted) / (error + rounding / critical), critical)


def distribution(pair: Pair, *, level: float = FAMILYWISE_LEVEL / 2) -> Distribution:
    """Predicted and empirical distribution functions at no more than 400 order statistics of each member.

    The largest of `|F − below|` and `|F − upto|` is the Kolmogorov–Smirnov distance, up to the thinning.
    """
    from scipy.stats import kstwo

    assert isinstance(pair.predicted, Law)
    assert isinstance(pair.measured, Samples)
    ordered = np.sort(np.asarray(pair.measured.values, dtype=float), axis=0)
    count, panel = ordered.shape
    picked = np.unique(np.linspace(0, count - 1, SHOWN_POINTS).astype(int))
    values = ordered[picked]
    below = np.broadcast_to((picked / count)[:, None], values.shape)
    predicted = np.asarray(pair.predicted.cdf(jnp.asarray(values, pair.measured.values.dtype)), dtype=float)
    return Distribution(values, predicted, below, below + 1 / count, float(kstwo.isf(level / panel, count)))


def bound_violations(pair: Pair, *, rule: BoundRule | None = None) -> Violations:
    """How near the measurement comes to its bound at each grid point, and where it violates it."""
    rule = BoundRule() if rule is None else rule
    grid, bound, measured, _ = _curves(pair)
    scale = np.where(np.isfinite(measured), np.abs(measured), 0).max(axis=(1, 2))[:, None, None]
    bad = ~(measured <= bound * (1 + rule.relative) + rule.absolute * scale)
    positive = bool((bound > 0).all() and not (measured < 0).any())
    with np.errstate(invalid="ignore"):
        if positive:
            share = measured / bound
        else:
            finite = np.abs(bound[np.isfinite(bound)])
            share = (measured - bound) / (finite.max(initial=0.0) or 1.0)
    share = np.where(np.isnan(share), np.inf, np.where(np.isinf(bound) & (bound > 0), -np.inf, share))
    return Violations(grid, share.max(axis=(0, 2)), 1.0 if positive else 0.0, bad.any(axis=(0, 2)))


def local_errors(pair: Pair) -> Points:
    """`‖measured − predicted‖ / ‖measured‖` at each grid point; NaN where nothing is measured."""
    _, predicted, measured, _ = _curves(pair)
    mean = measured.mean(axis=0)
    norms = np.linalg.norm(mean, axis=1)
    difference = np.linalg.norm(mean - predicted, axis=1)
    return np.divide(difference, norms, out=np.full_like(norms, np.nan), where=norms > 0)


def power_law(pair: Pair) -> PowerLaw:
    """The error `‖measured − predicted‖` against the size, with the least-squares slope of their logarithms."""
    size, predicted, measured, standard_error = _curves(pair)
    error = np.linalg.norm(measured.mean(axis=0) - predicted, axis=1)
    spread = np.full_like(error, np.nan) if standard_error is None else np.linalg.norm(standard_error, axis=1)
    fitted = (error > 0) & (size > 0) & np.isfinite(error)
    if fitted.sum() < 2:
        return PowerLaw(size, error, spread, float("nan"), (float("nan"), float("nan")))
    x, y = np.log(size[fitted]), np.log(error[fitted])
    slope = float(((x - x.mean()) * y).sum() / ((x - x.mean()) ** 2).sum())
    return PowerLaw(size, error, spread, slope, (float(np.exp(x.mean())), float(np.exp(y.mean()))))


def factors(pair: Pair, *, direction: str = "over") -> Ratios:
    """`predicted / measured` (``"over"``) or `measured / predicted` (``"under"``); NaN unless both are positive."""
    grid, predicted, measured, _ = _curves(pair)
    mean = measured.mean(axis=0)
    upper, lower = (predicted, mean) if direction == "over" else (mean, predicted)
    positive = (upper > 0) & (lower > 0)
    return Ratios(grid, np.divide(upper, lower, out=np.full_like(upper, np.nan), where=positive))


def _curves(pair: Pair) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Grid, predicted ``(points, entries)``, measured ``(replicates, points, entries)``, its standard error."""
    predicted, measured = pair.predicted, pair.measured
    assert isinstance(predicted, Curve)
    assert isinstance(measured, Curve)
    grid = np.asarray(predicted.grid, dtype=float)
    value = np.asarray(measured.value, dtype=float)
    if value.ndim == predicted.value.ndim:
        value = value[None]
    expected = np.broadcast_to(np.asarray(predicted.value, dtype=float), value.shape[1:])
    error = measured.standard_error
    error = None if error is None else np.asarray(error, dtype=float).reshape(grid.size, -1)
    return grid, expected.reshape(grid.size, -1), value.reshape(len(value), grid.size, -1), error
