"""How a number of ours is held against a number as printed."""

import abc
import math
import re

import equinox as eqx

from ..evidence import FAMILYWISE_LEVEL, Result, Verdict

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_WORDS = {"zero": 0.0, "none": 0.0}


def parse_numbers(printed: str) -> tuple[float, ...]:
    """The numbers in a printed text: signs, percent signs, ranges and a few words are understood.

    >>> parse_numbers("0.39-0.82"), parse_numbers("-0.120 ± 0.013"), parse_numbers("98%"), parse_numbers("~250x")
    ((0.39, 0.82), (-0.12, 0.013), (0.98,), (250.0,))
    """
    text = printed.strip().lower().replace("−", "-")
    if text in _WORDS:
        return (_WORDS[text],)
    if "e-" not in text:
        text = re.sub(r"(?<=[\d%])\s*[-–]\s*(?=\d)", " ", text)
    share = 0.01 if "%" in text or "percent" in text else 1.0
    return tuple(float(match) * share for match in _NUMBER.findall(text))


def parse_number(printed: str) -> float:
    """The first number in a printed text.

    Raises
    ------
    ValueError
        Where there is none.
    """
    found = parse_numbers(printed)
    if not found:
        raise ValueError(f"No number is printed in {printed!r}.")
    return found[0]


class AbstractQuotedRule(eqx.Module):
    """Holds a number of ours against the printed one; a NaN of ours disagrees."""

    @abc.abstractmethod
    def _compare(self, ours: float, printed: tuple[float, ...]) -> tuple[bool, float, float, str]:
        """Whether it holds, the discrepancy, the resolution, and a sentence."""

    def __call__(self, ours: float, quoted: str) -> Verdict:
        """Compare ``ours`` with the numbers printed in ``quoted``."""
        if not math.isfinite(ours):
            return Verdict(Result.DISAGREES, math.inf, math.nan, f"ours is {ours}")
        holds, discrepancy, resolution, message = self._compare(ours, parse_numbers(quoted))
        return Verdict(Result.AGREES if holds else Result.DISAGREES, discrepancy, resolution, message)


class Within(AbstractQuotedRule):
    """`|ours − printed| ≤ relative · |printed| + absolute`."""

    relative: float = 0.0
    absolute: float = 0.0

    def _compare(self, ours, printed):
        distance = abs(ours - printed[0])
        allowed = self.relative * abs(printed[0]) + self.absolute
        return distance <= allowed, distance, allowed, f"{ours:.6g} against {printed[0]:g} ± {allowed:.2g}"


class WithinFactor(AbstractQuotedRule):
    """`printed / factor ≤ ours ≤ printed · factor`, for positive numbers of other draws of the same experiment."""

    factor: float

    def _compare(self, ours, printed):
        ratio = ours / printed[0]
        holds = 1 / self.factor <= ratio <= self.factor
        return holds, ratio, 0.0, f"{ours:.4g} is {ratio:.3g} times {printed[0]:g}, allowed a factor of {self.factor:g}"


class AtMost(AbstractQuotedRule):
    """`ours ≤ factor · printed`: the printed number is reached or bettered."""

    factor: float = 1.0

    def _compare(self, ours, printed):
        limit = self.factor * printed[0]
        return ours <= limit, max(ours - limit, 0.0), 0.0, f"{ours:.6g} against at most {limit:g}"


class NoViolations(AbstractQuotedRule):
    """The number of violations is zero, as printed."""

    def _compare(self, ours, printed):
        return ours == 0 == printed[0], ours, 0.0, f"{ours:g} violations, printed {printed[0]:g}"


class InBand(AbstractQuotedRule):
    """`low ≤ ours ≤ high`; ends that are not given are read from the printed range.

    ``chance`` is the probability that the number lands in the band although the statement is true, where the
    number is itself random. A band that a true statement misses with a probability above the family-wise level
    decides nothing, whichever way it falls: the verdict is then inconclusive.
    """

    low: float | None = None
    high: float | None = None
    chance: float = 1.0

    def __call__(self, ours: float, quoted: str) -> Verdict:
        verdict = super().__call__(ours, quoted)
        if 1 - self.chance <= FAMILYWISE_LEVEL or not math.isfinite(ours):
            return verdict
        return Verdict(
            Result.INCONCLUSIVE,
            verdict.discrepancy,
            1 - self.chance,
            f"{verdict.message}; a true law misses this band with probability {1 - self.chance:.2g}",
        )

    def _compare(self, ours, printed):
        low = printed[0] if self.low is None else self.low
        high = printed[-1] if self.high is None else self.high
        outside = max(low - ours, ours - high, 0.0)
        return outside == 0, outside, 0.0, f"{ours:.6g} against [{low:g}, {high:g}]"


class KS(AbstractQuotedRule):
    """Both Kolmogorov–Smirnov distances, ours and the printed one, lie below the critical value.

    ``draws`` and ``panel`` set it: the family-wise level 1e-3 shared among the panel. Two distances of one law are
    random, so that they are not held against each other.
    """

    draws: int
    panel: int = 1

    def _compare(self, ours, printed):
        from scipy.stats import kstwo

        critical = float(kstwo.isf(FAMILYWISE_LEVEL / self.panel, self.draws))
        worst = max(ours, printed[0])
        return worst <= critical, worst, critical, f"{ours:.4g} and {printed[0]:g} against the critical {critical:.4g}"


class Above(AbstractQuotedRule):
    """Both numbers, ours and the printed one, are at least ``low``.

    For p-values: under the law they are uniform, so that two of them are not held against each other.
    """

    low: float

    def _compare(self, ours, printed):
        smallest = min(ours, printed[0])
        return (
            smallest >= self.low,
            max(self.low - smallest, 0.0),
            0.0,
            f"{ours:.4g} and {printed[0]:g} above {self.low:.2g}",
        )


class Slope(AbstractQuotedRule):
    """A fitted slope lies within ``band`` of the printed one."""

    band: float

    def _compare(self, ours, printed):
        distance = abs(ours - printed[0])
        return distance <= self.band, distance, self.band, f"slope {ours:.3f} against {printed[0]:g} ± {self.band:g}"


class Ordering(AbstractQuotedRule):
    """Our number has the sign of the printed one: an order of two quantities, read as their difference."""

    def _compare(self, ours, printed):
        return ours * printed[0] > 0, 0.0 if ours * printed[0] > 0 else abs(ours), 0.0, f"sign of {ours:.3g}"
