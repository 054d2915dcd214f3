"""What a row reads off the evidence of a run: one predicted and one measured number."""

import abc
from typing import NamedTuple

import equinox as eqx
import numpy as np

from ..evidence import Curve, Evaluation, Law, Samples, Verdict, kolmogorov_smirnov


class Read(NamedTuple):
    """A predicted and a measured number; ``nan`` where a side has none."""

    predicted: float
    measured: float


class AbstractReading(eqx.Module):
    """Reads a number off both sides of an observable."""

    @abc.abstractmethod
    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        """The two numbers."""

    def verdict(self, evaluation: Evaluation, observable: str) -> Verdict:
        """The verdict of the observable that this number belongs to."""
        return evaluation.verdicts[observable]


class Discrepancy(AbstractReading):
    """The discrepancy of the comparison itself, predicted to be zero: an identity's largest relative difference."""

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        return Read(0.0, evaluation.verdicts[observable].discrepancy)


class LargestDiscrepancy(AbstractReading):
    """The largest discrepancy over all observables of the run, predicted to be zero; the verdict is its own."""

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        return Read(0.0, self.verdict(evaluation, observable).discrepancy)

    def verdict(self, evaluation: Evaluation, observable: str) -> Verdict:
        """The verdict with the largest discrepancy; one that is not a number comes first."""
        return max(evaluation.verdicts.values(), key=lambda found: np.nan_to_num(found.discrepancy, nan=np.inf))


class CurveValue(AbstractReading):
    """A curve at the grid point ``at``, summed over nothing: the curve has one number per point.

    Where it has several, as over initialisations, ``entry`` says which of them.
    """

    at: float
    entry: int | None = None

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        pair = evaluation.pairs[observable]
        if not isinstance(pair.predicted, Curve) or not isinstance(pair.measured, Curve):
            raise ValueError(f"CurveValue reads a curve; {observable!r} is a law.")
        index = _index(evaluation.grid, self.at)
        if self.entry is not None:
            sides = (np.asarray(side.value)[index] for side in (pair.predicted, pair.measured))
            return Read(*(float(side.ravel()[self.entry]) for side in sides))
        return Read(float(pair.predicted.value[index]), float(np.mean(np.asarray(pair.measured.value)[..., index])))


class CurveDeviation(AbstractReading):
    """The measured minus the predicted value of a curve, predicted zero; ``at`` and ``entry`` as for the value."""

    at: float
    entry: int | None = None

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        predicted, measured = CurveValue(self.at, self.entry)(evaluation, observable)
        return Read(0.0, measured - predicted)


class _WholeCurve(AbstractReading):
    def _sides(self, evaluation: Evaluation, observable: str) -> tuple[np.ndarray, np.ndarray]:
        pair = evaluation.pairs[observable]
        if not isinstance(pair.predicted, Curve) or not isinstance(pair.measured, Curve):
            raise ValueError(f"{type(self).__name__} reads a curve; {observable!r} is a law.")
        return np.asarray(pair.predicted.value), np.asarray(pair.measured.value)


class LargestDeviation(_WholeCurve):
    """The largest absolute difference of the two sides of a curve over all points and entries; predicted zero."""

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        predicted, measured = self._sides(evaluation, observable)
        return Read(0.0, float(np.abs(measured - predicted).max()))


class CurveMedian(_WholeCurve):
    """The median of a curve over all points and entries."""

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        return Read(*(float(np.median(side)) for side in self._sides(evaluation, observable)))


class CurveError(AbstractReading):
    """Relative error `‖predicted − measured‖ / ‖measured‖` of the curve at the grid point ``at``; predicted zero."""

    at: float

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        pair = evaluation.pairs[observable]
        if not isinstance(pair.predicted, Curve) or not isinstance(pair.measured, Curve):
            raise ValueError(f"CurveError reads a curve; {observable!r} is a law.")
        index = _index(evaluation.grid, self.at)
        predicted, measured = (np.asarray(side.value)[index] for side in (pair.predicted, pair.measured))
        return Read(0.0, float(np.linalg.norm(predicted - measured) / np.linalg.norm(measured)))


class CurveRatio(AbstractReading):
    """The ratio of the predicted to the measured curve at the grid point ``at``; predicted one."""

    at: float

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        predicted, measured = CurveValue(self.at)(evaluation, observable)
        return Read(1.0, predicted / measured)


class LogError(AbstractReading):
    """`|log predicted − log measured|` of a positive curve, for costs in nats; predicted zero.

    The largest over all entries, or their mean with ``mean``. An entry that was never observed is infinitely wrong.
    """

    mean: bool = False

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        pair = evaluation.pairs[observable]
        if not isinstance(pair.predicted, Curve) or not isinstance(pair.measured, Curve):
            raise ValueError(f"LogError reads a curve; {observable!r} is a law.")
        with np.errstate(divide="ignore"):
            error = np.abs(np.log(np.asarray(pair.predicted.value)) - np.log(np.asarray(pair.measured.value)))
        return Read(0.0, float(error.mean() if self.mean else error.max()))


class SmallestRatio(AbstractReading):
    """The smallest factor between measurement and reference model, predicted to be ``declared`` or more."""

    declared: float

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        return Read(self.declared, evaluation.verdicts[observable].discrepancy)


class _LawReading(AbstractReading):
    def _sides(self, evaluation: Evaluation, observable: str) -> tuple[Law, np.ndarray]:
        pair = evaluation.pairs[observable]
        if not isinstance(pair.predicted, Law) or not isinstance(pair.measured, Samples):
            raise ValueError(f"{type(self).__name__} reads a law; {observable!r} is a curve.")
        return pair.predicted, np.asarray(pair.measured.values)


class Mean(_LawReading):
    """The mean of the panel member that belongs to the grid value ``at``."""

    at: float

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        law, values = self._sides(evaluation, observable)
        index = _index(evaluation.grid, self.at)
        return Read(float(law.mean[index]), float(values[:, index].mean()))


class Deviation(_LawReading):
    """The standard deviation of the panel member that belongs to the grid value ``at``."""

    at: float

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        law, values = self._sides(evaluation, observable)
        index = _index(evaluation.grid, self.at)
        return Read(float(np.sqrt(law.variance[index])), float(values[:, index].std(ddof=1)))


class Quantile(_LawReading):
    """The quantile at ``probability`` of the panel member that belongs to the grid value ``at``."""

    at: float
    probability: float

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        from scipy.optimize import brentq

        law, values = self._sides(evaluation, observable)
        index = _index(evaluation.grid, self.at)
        measured = float(np.quantile(values[:, index], self.probability))

        def excess(quantile: float) -> float:
            row = np.full((1, values.shape[1]), quantile, values.dtype)
            return float(np.asarray(law.cdf(row))[0, index]) - self.probability

        low, high = float(values[:, index].min()), float(values[:, index].max())
        predicted = brentq(excess, low, high, xtol=1e-14) if excess(low) < 0 < excess(high) else np.nan
        return Read(float(predicted), measured)  # pyright: ignore[reportArgumentType]


class KolmogorovSmirnov(_LawReading):
    """The Kolmogorov–Smirnov distance at the grid value ``at``, or the largest of the panel; predicted zero."""

    at: float | None = None

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        self._sides(evaluation, observable)
        distance = kolmogorov_smirnov(evaluation.pairs[observable])
        chosen = distance.max() if self.at is None else distance[_index(evaluation.grid, self.at)]
        return Read(0.0, float(chosen))


class PValue(_LawReading):
    """The p-value of the Kolmogorov–Smirnov test at the grid value ``at``, or the smallest of the panel.

    No single value is predicted: under the law it is uniform.
    """

    at: float | None = None

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        from scipy.stats import kstwo

        _, values = self._sides(evaluation, observable)
        p_values = kstwo.sf(kolmogorov_smirnov(evaluation.pairs[observable]), len(values))
        chosen = p_values.min() if self.at is None else p_values[_index(evaluation.grid, self.at)]
        return Read(float("nan"), float(chosen))


class MomentError(AbstractReading):
    """Mean absolute error of the ``moment``, "mean" or "variance", over the panels of all observables; predicted zero.

    The verdict is that of the observable that fits worst.
    """

    moment: str

    def __check_init__(self):
        if self.moment not in ("mean", "variance"):
            raise ValueError(f"moment is 'mean' or 'variance'; got {self.moment!r}.")

    def __call__(self, evaluation: Evaluation, observable: str) -> Read:
        errors = []
        for name, pair in evaluation.pairs.items():
            if not isinstance(pair.predicted, Law) or not isinstance(pair.measured, Samples):
                raise ValueError(f"MomentError reads laws; {name!r} is a curve.")
            values = np.asarray(pair.measured.values)
            measured = values.mean(axis=0) if self.moment == "mean" else values.var(axis=0, ddof=1)
            errors.append(np.abs(measured - np.asarray(getattr(pair.predicted, self.moment))))
        return Read(0.0, float(np.concatenate(errors).mean()))

    def verdict(self, evaluation: Evaluation, observable: str) -> Verdict:
        """That of the observable with the largest discrepancy."""
        return LargestDiscrepancy().verdict(evaluation, observable)


def _index(grid, at: float) -> int:
    matches = np.flatnonzero(np.isclose(np.asarray(grid), at))
    if len(matches) != 1:
        raise ValueError(f"The grid of the run has no point {at:g}; it is {np.asarray(grid).tolist()}.")
    return int(matches[0])
