"""The outcome of one comparison."""

from dataclasses import dataclass

from ._kind import Result


@dataclass(frozen=True)
class Verdict:
    """What a comparison found.

    Attributes
    ----------
    result
        One member of [`Result`][]; a scientific outcome is never an exception.
    discrepancy
        The size of the difference found, in the units of the rule (each rule states them).
    resolution
        The smallest difference that this run could tell from none, in the same units.
    message
        One sentence for a reader of the report.
    """

    result: Result
    discrepancy: float
    resolution: float
    message: str

    @classmethod
    def not_run(cls, why: str) -> "Verdict":
        """The verdict of a comparison that was not made."""
        return cls(Result.NOT_RUN, float("nan"), float("nan"), why)
