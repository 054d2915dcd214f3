"""A theory: what it predicts, the honest experiment, and the counterfeit that must be found out."""

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._montecarlo import draws
from .._types import Key
from ._evidence import Curve, Evidence, Pair, Samples
from ._kind import Kind, Result
from ._rules import AbstractRule
from ._verdict import Verdict


class AbstractTheory(eqx.Module):
    """A statement about training dynamics together with the experiment that could refute it.

    A theory is a final Equinox module in a file of its own. Class attributes describe the statement; array fields
    hold everything the statement conditions on (operators, weights, data), drawn from a seed of the instance when
    [`quick`][] or [`full`][] builds it. A run's ``key`` drives only what the statement averages over.

    Attributes
    ----------
    kind, rule
        Kind of the statement, and how the two sides are compared. ``rule.kind`` is ``kind``.
    source
        BibTeX entry.
    statement
        The claim in one or two sentences, normalisation included.
    observables
        Names that ``predict`` and ``sample`` return.
    assumptions, breaks_when
        What the statement needs, and the setting in which it fails.
    effect
        The smallest difference that the test must be able to see, in the units of the rule.
    quick_verdict
        What the quick configuration is declared to give.
    replicates
        How many replicates ``simulate`` runs unless told otherwise.
    """

    kind: eqx.AbstractClassVar[Kind]
    rule: eqx.AbstractClassVar[AbstractRule]
    source: eqx.AbstractClassVar[str]
    statement: eqx.AbstractClassVar[str]
    observables: eqx.AbstractClassVar[tuple[str, ...]]
    assumptions: eqx.AbstractClassVar[tuple[str, ...]]
    breaks_when: eqx.AbstractClassVar[str]
    effect: eqx.AbstractClassVar[float]
    quick_verdict: ClassVar[Result] = Result.AGREES
    replicates: eqx.AbstractVar[int]

    @classmethod
    @abc.abstractmethod
    def quick(cls, *, dtype: jax.typing.DTypeLike = float) -> "AbstractTheory":
        """A configuration that runs in seconds and still resolves ``effect``."""

    @classmethod
    @abc.abstractmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "AbstractTheory":
        """The configuration of the source, or as near as it can be reconstructed."""

    @abc.abstractmethod
    def grid(self) -> Float[Array, " points"]:
        """Where the observables are given."""

    @abc.abstractmethod
    def predict(self, grid: Float[Array, " points"]) -> dict[str, Evidence]:
        """The closed form, equation or bound: no training run and no randomness."""

    @abc.abstractmethod
    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Evidence]:
        """One replicate of the honest experiment; it never calls ``predict`` nor shares its formula."""

    @abc.abstractmethod
    def counterfeit(self) -> "AbstractTheory":
        """The same theory with one ingredient wrong, by about one ``effect``.

        Its prediction, held against the honest simulation of the theory itself, must disagree.
        """

    def simulate(
        self, grid: Float[Array, " points"], *, key: Key, replicates: int | None = None
    ) -> dict[str, Curve | Samples]:
        """Run ``sample`` over independent keys and gather the replicates.

        Samples are joined along their first axis. Curves are averaged, with the standard error of the mean, unless
        the rule compares every replicate: then the replicates stand in front. Deterministic in ``key``.
        """
        count = self.replicates if replicates is None else replicates
        stacked = draws(eqx.Partial(self.sample, grid), key, count)
        return {name: _gather(evidence, self.rule.every_replicate) for name, evidence in stacked.items()}

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of the array fields."""
        found = {leaf.dtype for leaf in jax.tree.leaves(eqx.filter(self, eqx.is_inexact_array))}
        if len(found) != 1:
            raise ValueError(
                f"The array fields of a theory share one floating dtype; {type(self).__name__} has "
                f"{sorted(map(str, found)) or 'none'}. Build them all with the dtype given to quick or full."
            )
        return found.pop()


def _gather(evidence: Evidence, every_replicate: bool) -> Curve | Samples:
    if isinstance(evidence, Samples):
        return Samples(evidence.values.reshape(-1, *evidence.values.shape[2:]))
    if not isinstance(evidence, Curve):
        raise ValueError(f"sample returns curves or samples; got {type(evidence).__name__}.")
    grid, value = evidence.grid[0], evidence.value
    if every_replicate:
        return Curve(grid, value)
    count = value.shape[0]
    error = jnp.std(value, axis=0, ddof=1) / jnp.sqrt(jnp.asarray(count, value.dtype)) if count > 1 else None
    return Curve(grid, jnp.mean(value, axis=0), error)


@dataclass(frozen=True)
class Evaluation:
    """What one run of a theory gave: the grid, and a pair and a verdict for each observable."""

    grid: Float[Array, " points"]
    pairs: Mapping[str, Pair]
    verdicts: Mapping[str, Verdict]


def evaluate(theory: AbstractTheory, *, key: Key, replicates: int | None = None) -> Evaluation:
    """Predict, simulate and compare every observable of a theory."""
    grid = theory.grid()
    measured = theory.simulate(grid, key=key, replicates=replicates)
    return judge(theory, grid, theory.predict(grid), measured)


def judge(
    theory: AbstractTheory,
    grid: Float[Array, " points"],
    predicted: Mapping[str, Evidence],
    measured: Mapping[str, Curve | Samples],
) -> Evaluation:
    """Hold predictions against measurements by the rule of the theory.

    Raises
    ------
    ValueError
        Where the two sides do not name the same observables.
    """
    if set(predicted) != set(measured):
        raise ValueError(
            f"{type(theory).__name__} predicts {sorted(predicted)} and samples {sorted(measured)}. "
            "Both return every name in 'observables'."
        )
    pairs = {
        name: Pair(predicted[name], measured[name])  # pyright: ignore[reportArgumentType] - Pair refuses misfits
        for name in theory.observables
    }
    verdicts = {name: theory.rule(pair, theory.effect) for name, pair in pairs.items()}
    return Evaluation(grid, pairs, verdicts)
