"""What every theory must satisfy, as a suite that runs on anyone's file."""

import re
import time
from dataclasses import dataclass
from functools import cached_property

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._montecarlo import draws
from ._evidence import Curve, Evidence, Samples, dtypes
from ._kind import Kind, Result
from ._rules import AbstractRule
from ._theory import AbstractTheory, Evaluation, evaluate, judge

QUICK_SECONDS = 5.0
"""CPU seconds that a quick configuration aims at, compilation included."""

RUNAWAY_SECONDS = 60.0
"""CPU seconds above which a quick configuration fails."""

_BIBTEX = re.compile(r"\s*@\w+\{[^,\s]+,.*\}\s*", re.DOTALL)


@dataclass(frozen=True)
class Check:
    """The outcome of one conformance check."""

    name: str
    passed: bool
    detail: str


class Conformance:
    """The conformance suite of one theory.

    ``checks`` names the checks; ``run(name)`` runs one of them. Runs are shared between checks, so the whole suite
    compiles ``sample`` once per dtype. It needs 64-bit mode, because both dtypes are exercised.

    Parameters
    ----------
    theory
        A final subclass of [`AbstractTheory`][].
    seed
        Seed of the runs.

    Raises
    ------
    ValueError
        Where 64-bit mode is off, or ``theory`` is not a theory.
    """

    checks = (
        "metadata",
        "float64",
        "float32",
        "observables",
        "finite",
        "deterministic",
        "transformations",
        "one_trace",
        "quick_verdict",
        "counterfeit",
        "quick_seconds",
    )

    def __init__(self, theory: type[AbstractTheory], *, seed: int = 0):
        if not (isinstance(theory, type) and issubclass(theory, AbstractTheory)):
            raise ValueError(f"Conformance takes a subclass of AbstractTheory; got {theory!r}.")
        if jnp.zeros(()).dtype != jnp.float64:
            raise ValueError('The suite runs in both dtypes. Call jax.config.update("jax_enable_x64", True) first.')
        self.theory = theory
        self.seed = seed
        self.quick_cpu_seconds = float("nan")

    def run(self, name: str) -> Check:
        """Run one check; an exception inside the theory fails the check and is told in its detail."""
        if name not in self.checks:
            raise ValueError(f"No check is called {name!r}; there are {', '.join(self.checks)}.")
        try:
            problem = getattr(self, f"_check_{name}")()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if name == "quick_seconds" and problem is None:
            return Check(name, True, f"{self.quick_cpu_seconds:.1f} CPU seconds (aim: {QUICK_SECONDS:g})")
        return Check(name, problem is None, problem or "")

    def run_all(self) -> list[Check]:
        """Run every check."""
        return [self.run(name) for name in self.checks]

    @cached_property
    def _key(self):
        return jax.random.key(self.seed)

    @cached_property
    def _theory64(self) -> AbstractTheory:
        return self.theory.quick(dtype=jnp.float64)

    @cached_property
    def _theory32(self) -> AbstractTheory:
        return self.theory.quick(dtype=jnp.float32)

    @cached_property
    def _evaluation64(self) -> Evaluation:
        started = time.process_time()
        theory = self._theory64
        evaluation = evaluate(theory, key=self._key)
        self.quick_cpu_seconds = time.process_time() - started
        return evaluation

    @cached_property
    def _evaluation32(self) -> Evaluation:
        return evaluate(self._theory32, key=self._key)

    def _check_metadata(self) -> str | None:
        theory, problems = self.theory, []
        for name, kind in (
            ("kind", Kind),
            ("rule", AbstractRule),
            ("source", str),
            ("statement", str),
            ("observables", tuple),
            ("assumptions", tuple),
            ("breaks_when", str),
            ("effect", float),
            ("quick_verdict", Result),
        ):
            value = getattr(theory, name, None)
            if not isinstance(value, kind) or not value:
                problems.append(f"{name} is {value!r}, not a filled {kind.__name__}")
        if not problems:
            if theory.rule.kind is not theory.kind:
                problems.append(f"kind is {theory.kind.value}, but the rule compares {theory.rule.kind.value}")
            if not _BIBTEX.fullmatch(theory.source) or theory.source.count("{") != theory.source.count("}"):
                problems.append("source is not a BibTeX entry")
            if len(set(theory.observables)) != len(theory.observables):
                problems.append("observables repeat a name")
            for name in theory.observables:
                if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                    problems.append(f"observable {name!r} is not lower-case words joined by '_'")
            if not theory.effect > 0:
                problems.append(f"effect is {theory.effect}, not positive")
        if not (theory.__doc__ or "").strip():
            problems.append("the class has no docstring")
        return "; ".join(problems) or None

    def _dtype_problem(self, theory: AbstractTheory, evaluation: Evaluation, dtype) -> str | None:
        if theory.dtype != dtype:
            return f"quick(dtype={dtype}) built array fields of {theory.dtype}"
        predicted, sampled = self._both_sides(theory)
        for side, evidence in (("predict", predicted), ("sample", sampled)):
            for name, value in evidence.items():
                if dtypes(value) - {jnp.dtype(dtype)}:
                    return f"{side} returns {name} in {sorted(map(str, dtypes(value)))} from a {dtype} configuration"
        for name, verdict in evaluation.verdicts.items():
            if verdict.result is not self.theory.quick_verdict:
                return f"{name} in {dtype}: {verdict.result.value} ({verdict.message})"
        return None

    def _both_sides(self, theory: AbstractTheory) -> tuple[dict[str, Evidence], dict[str, Evidence]]:
        grid = theory.grid()
        sampled = eqx.filter_eval_shape(theory.sample, grid, key=self._key)
        return theory.predict(grid), sampled

    def _check_float64(self) -> str | None:
        return self._dtype_problem(self._theory64, self._evaluation64, "float64")

    def _check_float32(self) -> str | None:
        return self._dtype_problem(self._theory32, self._evaluation32, "float32")

    def _check_observables(self) -> str | None:
        for side, evidence in zip(("predict", "sample"), self._both_sides(self._theory64), strict=True):
            if set(evidence) != set(self.theory.observables):
                return f"{side} returns {sorted(evidence)}, observables are {sorted(self.theory.observables)}"
        return None

    def _check_finite(self) -> str | None:
        for name, pair in self._evaluation64.pairs.items():
            for side, evidence in (("predicted", pair.predicted), ("measured", pair.measured)):
                for leaf in jax.tree.leaves(eqx.filter(evidence, eqx.is_inexact_array)):
                    if not np.isfinite(np.asarray(leaf)).all():
                        return f"{side} {name} has values that are not finite"
        return None

    def _check_deterministic(self) -> str | None:
        theory = self._theory64
        again = theory.simulate(theory.grid(), key=self._key)
        for name, pair in self._evaluation64.pairs.items():
            if not eqx.tree_equal(pair.measured, again[name]):
                return f"{name} differs between two simulations with the same key"
        return None

    def _check_transformations(self) -> str | None:
        theory = self._theory64
        grid = theory.grid()
        keys = jax.random.split(self._key, 2)
        batched = eqx.filter_jit(eqx.filter_vmap(lambda key: theory.sample(grid, key=key)))(keys)
        for i in range(2):
            single = eqx.filter_jit(theory.sample)(grid, key=keys[i])
            for name in self.theory.observables:
                one, many = _value(single[name]), _value(batched[name])[i]
                scale = float(jnp.max(jnp.abs(one)))
                if not float(jnp.max(jnp.abs(one - many))) <= 1e-9 * scale:
                    return f"{name} differs between one key under jit and the same key under vmap"
        return None

    def _check_one_trace(self) -> str | None:
        import chex

        chex.clear_trace_counter()
        counted = chex.assert_max_traces(lambda theory, grid, *, key: theory.sample(grid, key=key), n=1)
        theory = self._theory64
        other = jax.tree.map(lambda leaf: leaf * 1.0009765625 if eqx.is_inexact_array(leaf) else leaf, theory)
        try:
            for instance in (theory, other):
                draws(eqx.Partial(counted, instance, instance.grid()), self._key, 1)
        except AssertionError as error:
            return f"two instances that differ in array values alone share no program of sample: {error}"
        return None

    def _check_quick_verdict(self) -> str | None:
        for name, verdict in self._evaluation64.verdicts.items():
            if verdict.result is not self.theory.quick_verdict:
                return f"{name}: {verdict.result.value}, declared {self.theory.quick_verdict.value} ({verdict.message})"
        return None

    def _check_counterfeit(self) -> str | None:
        theory, honest = self._theory64, self._evaluation64
        predicted = theory.counterfeit().predict(honest.grid)
        fake = judge(theory, honest.grid, predicted, {name: pair.measured for name, pair in honest.pairs.items()})
        if any(verdict.result is Result.DISAGREES for verdict in fake.verdicts.values()):
            return None
        told = "; ".join(
            f"{name}: {verdict.result.value} ({verdict.message})" for name, verdict in fake.verdicts.items()
        )
        return f"the counterfeit was not found out: {told}"

    def _check_quick_seconds(self) -> str | None:
        _ = self._evaluation64
        if self.quick_cpu_seconds > RUNAWAY_SECONDS:
            return f"quick took {self.quick_cpu_seconds:.0f} CPU seconds, more than {RUNAWAY_SECONDS:g}"
        return None


def _value(evidence: Evidence) -> jax.Array:
    if isinstance(evidence, Samples):
        return evidence.values
    assert isinstance(evidence, Curve)
    return evidence.value
