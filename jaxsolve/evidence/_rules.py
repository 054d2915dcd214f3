"""One comparison rule for each kind of statement."""

import abc
from typing import ClassVar

import equinox as eqx
import numpy as np

from .._numerics import machine_epsilon, violated
from ._evidence import Curve, Law, Pair, Samples
from ._kind import Kind, Result
from ._verdict import Verdict

FAMILYWISE_LEVEL = 1e-3
"""Probability with which a true statistical statement is called wrong, over all entries of one comparison."""

SMALLEST_SHARE = 1e-6
"""A compared quantity below this share of its scale proves nothing: it has vanished on both sides."""


class AbstractRule(eqx.Module):
    """How a prediction and a measurement of one kind are compared.

    A rule is called with a [`Pair`][] and the ``effect`` of the theory, the smallest difference that the test must
    be able to see. It disagrees where the measurement contradicts the prediction, is inconclusive where
    ``resolution`` is larger than ``effect``, and agrees otherwise.
    """

    kind: eqx.AbstractClassVar[Kind]
    every_replicate: ClassVar[bool] = False
    """Whether each replicate is compared, instead of their mean."""

    @abc.abstractmethod
    def __call__(self, pair: Pair, effect: float) -> Verdict:
        """Compare; ``discrepancy`` and ``resolution`` are in the units that the rule's docstring states."""


def _curves(pair: Pair) -> tuple[Curve, Curve]:
    if not isinstance(pair.predicted, Curve) or not isinstance(pair.measured, Curve):
        raise ValueError(f"This rule compares curves; got {type(pair.predicted).__name__}. Only LawRule takes a law.")
    return pair.predicted, pair.measured


def _conclude(
    holds: bool, discrepancy: float | np.floating, resolution: float | np.floating, effect: float, message: str
) -> Verdict:
    discrepancy, resolution = float(discrepancy), float(resolution)
    if not holds:
        return Verdict(Result.DISAGREES, discrepancy, resolution, message)
    if not resolution <= effect:
        return Verdict(
            Result.INCONCLUSIVE,
            discrepancy,
            resolution,
            f"{message}; the run resolves {resolution:.3g}, an effect of {effect:.3g} could not be seen",
        )
    return Verdict(Result.AGREES, discrepancy, resolution, message)


def _double(values) -> np.ndarray:
    """Values in double precision: comparing adds no rounding of its own."""
    array = np.asarray(values)
    return array.astype(np.result_type(array.dtype, np.float64))


def _not_finite(*arrays: np.ndarray) -> Verdict | None:
    bad = sum(int(np.size(array) - np.isfinite(array).sum()) for array in arrays)
    if bad:
        return Verdict(Result.DISAGREES, np.inf, np.nan, f"{bad} values are not finite")
    return None


def _critical(entries: int, level: float = FAMILYWISE_LEVEL) -> float:
    """Two-sided normal critical value for ``entries`` simultaneous comparisons (Bonferroni)."""
    from scipy.stats import norm

    return float(norm.isf(level / (2 * max(entries, 1))))


def _norms(values: np.ndarray, axes_kept: int) -> np.ndarray:
    flat = values.reshape(*values.shape[:axes_kept], -1)
    scale = np.maximum(np.abs(flat).max(axis=-1, initial=0.0), np.finfo(flat.dtype).tiny)
    return scale * np.linalg.norm(flat / scale[..., None], axis=-1)


class IdentityRule(AbstractRule):
    """Two routes agree up to rounding.

    Discrepancy: the largest `‖measured − predicted‖ / scale` over the grid and the replicates, where ``scale`` is
    the norm at the grid point (``relative_to="point"``) or the largest norm on the curve (``"curve"``). Resolution:
    ``constant`` times the machine epsilon of the predicted values. Where the predicted norm is at most 1e-6 of the
    largest on the curve, or everything is zero, the verdict is inconclusive.
    """

    constant: float = 64.0
    relative_to: str = "point"
    kind: ClassVar[Kind] = Kind.IDENTITY
    every_replicate: ClassVar[bool] = True

    def __check_init__(self):
        if self.relative_to not in ("point", "curve"):
            raise ValueError(f"relative_to is 'point' or 'curve'; got {self.relative_to!r}.")

    def __call__(self, pair: Pair, effect: float) -> Verdict:
        predicted_curve, measured_curve = _curves(pair)
        predicted, measured = _double(predicted_curve.value), _double(measured_curve.value)
        if problem := _not_finite(predicted, measured):
            return problem
        if measured.ndim == predicted.ndim:
            measured = measured[None]
        norms = _norms(predicted, 1)
        largest = norms.max()
        resolution = self.constant * machine_epsilon(predicted_curve.value.dtype)
        if largest == 0 or (norms <= SMALLEST_SHARE * largest).any():
            where = predicted_curve.grid[int(norms.argmin())]
            return Verdict(
                Result.INCONCLUSIVE, np.nan, resolution, f"the compared quantity has vanished at grid point {where:g}"
            )
        scale = norms if self.relative_to == "point" else largest
        difference = _norms(measured - predicted, 2) / scale
        worst = float(difference.max())
        point = predicted_curve.grid[int(difference.max(axis=0).argmax())]
        return _conclude(
            worst <= resolution,
            worst,
            resolution,
            effect,
            f"largest relative difference {worst:.3g} (at {point:g}), allowed {resolution:.3g}",
        )


class PopulationRule(AbstractRule):
    """A mean over replicates equals the prediction at every grid point.

    Each entry may deviate by `z` standard errors plus 64 machine epsilons of the largest prediction, `z` the
    two-sided normal critical value at the family-wise ``level`` shared among all entries. Discrepancy and resolution
    are the largest deviation and the largest `z`·standard error, both relative to the largest predicted value. The
    standard error is taken as known: use a hundred replicates or more.
    """

    level: float = FAMILYWISE_LEVEL
    kind: ClassVar[Kind] = Kind.POPULATION

    def __call__(self, pair: Pair, effect: float) -> Verdict:
        predicted_curve, measured_curve = _curves(pair)
        predicted, measured = _double(predicted_curve.value), _double(measured_curve.value)
        if measured_curve.standard_error is None:
            return Verdict(Result.INCONCLUSIVE, np.nan, np.inf, "one replicate has no standard error")
        error = _double(measured_curve.standard_error)
        if problem := _not_finite(predicted, measured, error):
            return problem
        critical = _critical(predicted.size, self.level)
        scale = np.abs(predicted).max() or 1.0
        deviation = np.abs(measured - predicted)
        allowed = critical * error + 64 * machine_epsilon(predicted_curve.value.dtype) * scale
        excess = (deviation / allowed).max()
        return _conclude(
            bool(excess <= 1),
            deviation.max() / scale,
            (critical * error).max() / scale,
            effect,
            f"largest deviation {critical * excess:.2f} of {critical:.2f} allowed standard errors",
        )


class LawRule(AbstractRule):
    """A panel of samples follows its laws.

    Half of the family-wise ``level`` goes to Kolmogorov–Smirnov tests, Holm-corrected over the panel, half to the
    first two moments (normal critical values; the standard error of the variance comes from the fourth central
    moment of the samples). Discrepancy: the largest Kolmogorov–Smirnov distance. Resolution: its critical value.
    """

    level: float = FAMILYWISE_LEVEL
    kind: ClassVar[Kind] = Kind.LAW

    def __call__(self, pair: Pair, effect: float) -> Verdict:
        from scipy.stats import kstwo

        if not isinstance(pair.predicted, Law) or not isinstance(pair.measured, Samples):
            raise ValueError(f"LawRule compares a Law with Samples; got {type(pair.predicted).__name__}.")
        values = np.asarray(pair.measured.values, dtype=float)
        mean, variance = np.asarray(pair.predicted.mean, float), np.asarray(pair.predicted.variance, float)
        if problem := _not_finite(values, mean, variance):
            return problem
        count, panel = values.shape
        distance = kolmogorov_smirnov(pair)
        if problem := _not_finite(distance):
            return problem
        ordered = np.sort(kstwo.sf(distance, count))
        holm = self.level / 2 / (panel - np.arange(panel))
        centred = values - values.mean(axis=0)
        second = (centred**2).mean(axis=0)
        fourth = (centred**4).mean(axis=0)
        z_mean = np.abs(values.mean(axis=0) - mean) / np.sqrt(variance / count)
        z_variance = np.abs(second - variance) / np.sqrt(np.maximum(fourth - second**2, np.finfo(float).tiny) / count)
        z_largest = float(np.maximum(z_mean, z_variance).max())
        critical = _critical(2 * panel, self.level / 2)
        return _conclude(
            bool((ordered >= holm).all()) and z_largest <= critical,
            distance.max(),
            float(kstwo.isf(self.level / 2 / panel, count)),
            effect,
            f"largest Kolmogorov-Smirnov distance {distance.max():.4g} over {panel} laws of {count} draws, "
            f"smallest p {ordered[0]:.3g}; moments within {z_largest:.2f} of {critical:.2f} standard errors",
        )


def kolmogorov_smirnov(pair: Pair) -> np.ndarray:
    """Kolmogorov–Smirnov distance of each member of the panel."""
    assert isinstance(pair.predicted, Law)
    assert isinstance(pair.measured, Samples)
    ordered = np.sort(np.asarray(pair.measured.values), axis=0)
    count = ordered.shape[0]
    below = np.asarray(pair.predicted.cdf(ordered), dtype=float)
    steps = np.arange(1, count + 1)[:, None] / count
    return np.maximum(steps - below, below - (steps - 1 / count)).max(axis=0)


class BoundRule(AbstractRule):
    """An inequality `measured ≤ predicted` holds everywhere.

    A violation exceeds `predicted + relative |predicted| + absolute · scale`, where ``scale`` is the largest finite
    measured value of the replicate; a NaN on either side is a violation, an infinite bound is vacuous. Discrepancy:
    the share of violated inequalities. Resolution: one over their number. The slack is reported; a bound is never
    called tight.
    """

    relative: float = 1e-10
    absolute: float = 1e-13
    kind: ClassVar[Kind] = Kind.BOUND
    every_replicate: ClassVar[bool] = True

    def __call__(self, pair: Pair, effect: float) -> Verdict:
        predicted_curve, measured_curve = _curves(pair)
        bound, measured = _double(predicted_curve.value), _double(measured_curve.value)
        if measured.ndim == bound.ndim:
            measured = measured[None]
        finite = np.where(np.isfinite(measured), np.abs(measured), 0)
        scale = finite.reshape(len(measured), -1).max(axis=1).reshape(-1, *[1] * bound.ndim)
        bound = np.broadcast_to(bound, measured.shape)
        wrong = violated(measured, bound, relative=self.relative, absolute=self.absolute * scale)
        count = wrong.size
        if not np.isfinite(bound).any() and not wrong.any():
            return Verdict(Result.INCONCLUSIVE, 0.0, np.inf, "every bound is infinite")
        with np.errstate(divide="ignore", invalid="ignore"):
            slack = np.nanmedian(np.where(measured > 0, bound / measured, np.nan)) if (measured > 0).any() else np.nan
        return _conclude(
            not wrong.any(),
            float(wrong.mean()),
            1 / count,
            effect,
            f"{int(wrong.sum())} of {count} inequalities violated; median slack {slack:.3g}",
        )


class LocalRule(AbstractRule):
    """An approximation holds up to a horizon, and fails beyond it.

    The relative error `‖measured − predicted‖ / ‖measured‖` stays at or below ``level`` at grid points up to
    ``horizon`` and exceeds it somewhere beyond. Discrepancy: the largest relative error inside the horizon.
    Resolution: the largest relative standard error inside it, times its critical value.
    """

    level: float
    horizon: float
    kind: ClassVar[Kind] = Kind.LOCAL

    def __call__(self, pair: Pair, effect: float) -> Verdict:
        predicted_curve, measured_curve = _curves(pair)
        predicted, measured = _double(predicted_curve.value), _double(measured_curve.value)
        grid = np.asarray(measured_curve.grid)
        if problem := _not_finite(measured):
            return problem
        size = np.maximum(_norms(measured, 1), np.finfo(measured.dtype).tiny)
        relative = _norms(measured - predicted, 1) / size
        inside = grid <= self.horizon
        if not inside.any() or inside.all():
            return Verdict(Result.INCONCLUSIVE, np.nan, np.inf, "the grid does not reach both sides of the horizon")
        error = measured_curve.standard_error
        resolution = machine_epsilon(measured_curve.value.dtype)
        if error is not None:
            resolution = _critical(int(inside.sum())) * float((_norms(_double(error), 1) / size)[inside].max())
        within, beyond = float(relative[inside].max()), float(relative[~inside].max())
        return _conclude(
            within <= self.level and not beyond <= self.level,
            within,
            resolution,
            effect,
            f"relative error {within:.3g} up to {self.horizon:g} (declared {self.level:.3g}), {beyond:.3g} beyond",
        )


class LimitRule(AbstractRule):
    """An error vanishes as a power of the size.

    The slope of `log ‖measured − predicted‖` against `log grid` (least squares, three sizes or more) lies within
    ``band`` of ``exponent``. Discrepancy: the distance of the slope from the exponent. Resolution: the standard
    error of the slope times its critical value; it comes from the standard errors where there are any, else from
    the scatter about the line.
    """

    exponent: float
    band: float
    kind: ClassVar[Kind] = Kind.LIMIT

    def __call__(self, pair: Pair, effect: float) -> Verdict:
        predicted_curve, measured_curve = _curves(pair)
        predicted, measured = _double(predicted_curve.value), _double(measured_curve.value)
        if problem := _not_finite(predicted, measured):
            return problem
        size = np.asarray(measured_curve.grid, dtype=float)
        if size.size < 3:
            return Verdict(Result.INCONCLUSIVE, np.nan, np.inf, f"a slope needs three sizes; got {size.size}")
        error = _norms(measured - predicted, 1)
        if not (error > 0).all():
            return Verdict(Result.INCONCLUSIVE, np.nan, np.inf, "the error is exactly zero at some size")
        centred = np.log(size) - np.log(size).mean()
        weights = centred / (centred**2).sum()
        slope = float(weights @ np.log(error))
        if measured_curve.standard_error is not None:
            scatter = _norms(_double(measured_curve.standard_error), 1) / error
        else:
            residual = np.log(error) - np.log(error).mean() - slope * centred
            scatter = np.full(size.size, np.sqrt((residual**2).sum() / (size.size - 2)))
        resolution = _critical(1) * float(np.sqrt(((weights * scatter) ** 2).sum()))
        distance = abs(slope - self.exponent)
        return _conclude(
            distance <= self.band,
            distance,
            resolution,
            effect,
            f"fitted slope {slope:.3f}, declared {self.exponent:g} ± {self.band:g}",
        )


class TransitionRule(AbstractRule):
    """A change of behaviour is found inside the predicted bracket.

    ``predicted.value`` has shape (points, 2), the two ends of each bracket; ``measured.value`` holds the locations.
    Discrepancy: the largest distance of a location from its bracket, zero inside. Resolution: the largest standard
    error of a location times its critical value.
    """

    kind: ClassVar[Kind] = Kind.TRANSITION

    def __call__(self, pair: Pair, effect: float) -> Verdict:
        predicted_curve, measured_curve = _curves(pair)
        bracket, location = _double(predicted_curve.value), _double(measured_curve.value)
        if bracket.shape != (*location.shape, 2):
            raise ValueError(
                f"Brackets have shape {(*location.shape, 2)}, one (low, high) per location; got {bracket.shape}."
            )
        if problem := _not_finite(bracket, location):
            return problem
        outside = np.maximum(np.maximum(bracket[..., 0] - location, location - bracket[..., 1]), 0)
        error = measured_curve.standard_error
        resolution = 0.0 if error is None else _critical(location.size) * float(np.max(_double(error)))
        return _conclude(
            bool((outside == 0).all()),
            outside.max(),
            resolution,
            effect,
            f"{int((outside == 0).sum())} of {location.size} locations inside their brackets",
        )


class NullModelRule(AbstractRule):
    """A reference model fails by at least a factor.

    The ratio `predicted / measured` (``direction="over"``) or `measured / predicted` (``"under"``) is at least
    ``factor`` at every grid point, where ``predicted`` is what the reference model says. Discrepancy: the smallest
    ratio. Resolution: the largest relative standard error times its critical value.
    """

    factor: float
    direction: str = "over"
    kind: ClassVar[Kind] = Kind.NULL_MODEL

    def __check_init__(self):
        if self.direction not in ("over", "under"):
            raise ValueError(f"direction is 'over' or 'under'; got {self.direction!r}.")

    def __call__(self, pair: Pair, effect: float) -> Verdict:
        predicted_curve, measured_curve = _curves(pair)
        predicted, measured = _double(predicted_curve.value), _double(measured_curve.value)
        if problem := _not_finite(predicted, measured):
            return problem
        upper, lower = (predicted, measured) if self.direction == "over" else (measured, predicted)
        if not (lower > 0).all():
            return Verdict(Result.INCONCLUSIVE, np.nan, np.inf, "a ratio needs positive values on both sides")
        ratio = float((upper / lower).min())
        error = measured_curve.standard_error
        resolution = machine_epsilon(measured_curve.value.dtype)
        if error is not None:
            resolution = _critical(measured.size) * float((_double(error) / np.abs(measured)).max())
        return _conclude(
            ratio >= self.factor,
            ratio,
            resolution,
            effect,
            f"the reference model is {self.direction} by a factor of {ratio:.3g} or more (declared {self.factor:g})",
        )
