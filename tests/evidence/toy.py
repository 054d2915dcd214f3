"""Theories made for the tests: one that is right, and ways of being wrong."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxsolve.evidence import AbstractTheory, Curve, Kind, PopulationRule


class Right(AbstractTheory):
    """The mean of `c x²`."""

    kind: ClassVar = Kind.POPULATION
    rule: ClassVar = PopulationRule()
    source: ClassVar = "@misc{right, title = {Right}}"
    statement: ClassVar = "The mean of c x² is c."
    observables: ClassVar = ("mean",)
    assumptions: ClassVar = ("Gaussian",)
    breaks_when: ClassVar = "never"
    effect: ClassVar = 0.2
    gain: jax.Array
    replicates: int = eqx.field(static=True)

    @classmethod
    def quick(cls, *, dtype=float):
        return cls(jnp.asarray([1.0, 2.0], dtype), 2000)

    @classmethod
    def full(cls, *, dtype=float):
        return cls.quick(dtype=dtype)

    def grid(self):
        return jnp.arange(1, 3, dtype=self.dtype)

    def predict(self, grid):
        return {"mean": Curve(grid, self.gain)}

    def sample(self, grid, *, key):
        return {"mean": Curve(grid, self.gain * jax.random.normal(key, (2,), self.dtype) ** 2)}

    def counterfeit(self):
        return eqx.tree_at(lambda theory: theory.gain, self, 1.5 * self.gain)


class NoMetadata(Right):
    source: ClassVar = "somewhere"
    breaks_when: ClassVar = ""


class WrongKind(Right):
    """Says identity, compares means."""

    kind: ClassVar = Kind.IDENTITY


class Float64Only(Right):
    """Ignores the dtype it is given."""

    @classmethod
    def quick(cls, *, dtype=float):
        return cls(jnp.asarray([1.0, 2.0], jnp.float64), 2000)


class OtherObservables(Right):
    """Samples a name that it does not predict."""

    def sample(self, grid, *, key):
        return {"average": super().sample(grid, key=key)["mean"]}


class NotFinite(Right):
    """Predicts an infinity."""

    def predict(self, grid):
        return {"mean": Curve(grid, self.gain / (grid - 1))}


class KeyFromOutside(Right):
    """Draws from a stream of its own."""

    def simulate(self, grid, *, key, replicates=None):
        global _calls
        _calls += 1
        return super().simulate(grid, key=jax.random.fold_in(key, _calls), replicates=replicates)


_calls = 0


class PythonBranch(Right):
    """Looks at a value while it is traced."""

    def sample(self, grid, *, key):
        return super().sample(grid, key=key) if float(self.gain[0]) > 0 else {}


class WrongVerdict(Right):
    """Predicts something else than it measures."""

    def predict(self, grid):
        return {"mean": Curve(grid, 2 * self.gain)}


class Toothless(Right):
    """A counterfeit that is the truth."""

    def counterfeit(self):
        return self
