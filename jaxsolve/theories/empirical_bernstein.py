"""With its declared confidence, the empirical Bernstein bound is not below the clipped risk."""

import dataclasses
import math
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..certificates import EmpiricalBernstein as Certificate
from ..certificates import empirical_bernstein
from ..evidence import AbstractTheory, BoundRule, Curve, Kind
from ..preconditioners import FreeLinear
from ..solver import apply_operators, pretrain, rollout, wishart_operators

INSTANCE_SEED = 24


def _whole_bound(certificate: Certificate) -> Scalar:
    return certificate.bound


def _without_last_term(certificate: Certificate) -> Scalar:
    return certificate.mean + certificate.deviation


class RareLosses(eqx.Module):
    """Losses that are ``height`` with a small probability, and zero otherwise."""

    probability: Scalar
    height: Scalar

    def clipped_risk(self, clip: float, *, key: Key) -> Scalar:
        """`E min(ℓ, B)`, which is known."""
        del key
        return self.probability * jnp.minimum(self.height, clip)


class DecoderLosses(eqx.Module):
    """`ℓ = ‖z_L − z*‖² / K` of a frozen decoder on Wishart tasks with the given spectrum and `8 K` degrees of freedom.

    Solutions are standard normal, starts zero.
    """

    preconditioner: Float[Array, "size size"]
    spectrum: Float[Array, " size"]
    depth: int = eqx.field(static=True)
    fresh: int = eqx.field(static=True)

    def losses(
        self, operators: Float[Array, "tasks size size"], solutions: Float[Array, "tasks size"]
    ) -> Float[Array, " tasks"]:
        """Of given tasks."""
        initial, right_hand_sides = jnp.zeros_like(solutions), apply_operators(operators, solutions)
        final = rollout(self.preconditioner, operators, right_hand_sides, initial, depth=self.depth)
        return jnp.mean((final - solutions) ** 2, axis=1)

    def clipped_risk(self, clip: float, *, key: Key) -> Scalar:
        """The mean of ``fresh`` new clipped losses."""
        shape = (self.fresh, self.spectrum.size, 8 * self.spectrum.size + 1)
        # Drawn flat: several axes under vmap take three times as long to compile.
        drawn = jax.random.normal(key, (math.prod(shape),), self.spectrum.dtype).reshape(shape)
        operators = jnp.asarray(wishart_operators(drawn[:, :, 1:], self.spectrum))
        losses = self.losses(operators, drawn[:, :, 0])
        return jnp.mean(jnp.minimum(losses, clip))


class EmpiricalBernstein(AbstractTheory):
    """`E min(ℓ, B) ≤ B (x̄ + (2 V ln(2/δ) / n)^{1/2} + 7 ln(2/δ) / (3 (n − 1)))` with probability at least `1 − δ`.

    `x̄` and `V` are mean and unbiased variance of `min(ℓ_i, B) / B` over `n` independent losses. Three laws are put to
    the test, at `B = 10` and `δ = 0.05`:

    0. losses `2 B` with probability 0.002, else zero, `n = 512`;
    1. losses `2 B` with probability 0.02, else zero, `n = 64`;
    2. losses `‖z_L − z*‖² / K` of a decoder, `n = 512`. Its free matrix is trained and frozen when the configuration
       is built, on operators `S^{1/2} W S^{1/2}` with `W` a Wishart matrix over its `8 K` degrees of freedom and `S`
       diagonal from 0.1 to 1.

    Samples of all three are fields. A bound that holds with probability `1 − δ` fails in a share `δ` of many samples
    at most: the prediction is the `δ`-quantile of the bound over the samples of a law, a number that the clipped risk
    may not exceed. Of the third law there is one sample, as there is in practice, and the prediction is its bound. The
    measurement is the clipped risk, known for the first two laws, and from fresh tasks for the third.

    In the first two laws many samples contain no loss at all. Their mean and variance are zero, and only the last term
    of the bound, which no sample changes, keeps it above the risk. The counterfeit leaves it out.

    Attributes
    ----------
    laws
        What losses are drawn from.
    losses
        Samples `ℓ_i` of each law, one per row.
    clip, confidence_delta
        `B` and `δ`.
    bound
        What is read off a certificate.
    """

    laws: tuple[RareLosses | DecoderLosses, ...]
    losses: tuple[Float[Array, "_ _"], ...]
    clip: float = eqx.field(static=True)
    confidence_delta: float = eqx.field(static=True)
    bound: Callable[[Certificate], Array] = eqx.field(static=True, default=_whole_bound)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.BOUND
    rule: ClassVar[BoundRule] = BoundRule()
    source: ClassVar[str] = """@inproceedings{maurer2009empirical,
  author = {Maurer, Andreas and Pontil, Massimiliano},
  title = {Empirical {B}ernstein Bounds and Sample Variance Penalization},
  booktitle = {Proceedings of the 22nd Annual Conference on Learning Theory},
  year = {2009},
}"""
    statement: ClassVar[str] = (
        "In a share of at least 1 - delta of samples, the mean clipped loss plus two terms of deviation is not below "
        "the expected clipped loss."
    )
    observables: ClassVar[tuple[str, ...]] = ("clipped_risk",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "losses are independent, of one law and not negative",
        "clip and confidence are fixed before the losses are seen",
    )
    breaks_when: ClassVar[str] = "The tasks of the sample were trained on, or the clip was chosen by looking at losses."
    effect: ClassVar[float] = 0.34

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 16,
        tasks: int = 64,
        depth: int = 8,
        steps: int = 40,
        samples: int = 1_000,
        fresh: int = 1_024,
        clip: float = 10.0,
        confidence_delta: float = 0.05,
        instance_seed: int = INSTANCE_SEED,
    ) -> "EmpiricalBernstein":
        """1000 samples of the first two laws, and a decoder trained for 40 steps.

        Parameters
        ----------
        dtype
            Of all arrays.
        size, tasks, depth, steps
            `K`, how many tasks train the decoder, `L`, and for how many steps.
        samples
            Of each of the first two laws.
        fresh
            How many fresh losses of the decoder are averaged.
        clip, confidence_delta
            `B` and `δ`.
        instance_seed
            Of samples and training tasks.
        """
        random = np.random.default_rng(instance_seed)
        unseen, spectrum = 512, np.logspace(-1, 0, size)
        operators = wishart_operators(random.standard_normal((tasks + unseen, size, 8 * size)), spectrum)
        operators, spectrum = jnp.asarray(operators, dtype), jnp.asarray(spectrum, dtype)
        solutions = jnp.asarray(random.standard_normal((tasks + unseen, size)), dtype)
        rare = {0.002: 512, 0.02: 64}
        drawn = [np.where(random.random((samples, n)) < chance, 2 * clip, 0) for chance, n in rare.items()]
        preconditioner = _trained(operators[:tasks], solutions[:tasks], depth, steps)
        decoder = DecoderLosses(preconditioner, spectrum, depth, fresh)
        laws = [RareLosses(jnp.asarray(chance, dtype), jnp.asarray(2 * clip, dtype)) for chance in rare]
        return cls(
            laws=(*laws, decoder),
            losses=(
                *(jnp.asarray(losses, dtype) for losses in drawn),
                decoder.losses(operators[tasks:], solutions[tasks:])[None],
            ),
            clip=clip,
            confidence_delta=confidence_delta,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 256,
        steps: int = 1500,
        samples: int = 10_000,
        fresh: int = 8_192,
        **options,
    ) -> "EmpiricalBernstein":
        """10 000 samples, and a decoder trained on 256 tasks for 1500 steps; the other options are as in ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, steps=steps, samples=samples, fresh=fresh, **options)

    def grid(self) -> Float[Array, " points"]:
        """The laws by number."""
        return jnp.arange(len(self.laws), dtype=self.losses[0].dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The `δ`-quantile of the bound over the samples of each law."""

        def bound(losses):
            return self.bound(
                empirical_bernstein(losses, clip=self.clip, confidence_delta=self.confidence_delta, throw=False)
            )

        quantiles = [
            jnp.sort(jax.vmap(bound)(losses))[int(self.confidence_delta * len(losses))] for losses in self.losses
        ]
        return {"clipped_risk": Curve(grid, jnp.stack(quantiles))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Expected clipped losses."""
        keys = jax.random.split(key, len(self.laws))
        risks = [law.clipped_risk(self.clip, key=one) for law, one in zip(self.laws, keys, strict=True)]
        return {"clipped_risk": Curve(grid, jnp.stack(risks))}

    def counterfeit(self) -> "EmpiricalBernstein":
        """The bound without its deterministic term."""
        return dataclasses.replace(self, bound=_without_last_term)


def _trained(operators, solutions, depth, steps):
    """A free matrix trained by Adam, with a learning rate that falls from 1e-2 to zero along a cosine."""
    run = pretrain(
        FreeLinear(np.eye(operators.shape[1], dtype=operators.dtype)),
        operators,
        apply_operators(operators, solutions),
        jnp.zeros_like(solutions),
        solutions,
        depth=depth,
        optimizer=optax.adam(optax.cosine_decay_schedule(1e-2, steps)),
        steps=steps,
    )
    return run.parameters.entries
