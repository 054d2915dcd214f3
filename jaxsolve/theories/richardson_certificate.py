"""The error of a frozen decoder lies under the spectral-norm bound, whatever the family and the training."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from .._types import Key
from ..certificates import contraction_certificate
from ..evidence import AbstractTheory, BoundRule, Curve, Kind
from ..preconditioners import (
    AbstractPreconditioner,
    Flexformer,
    FreeLinear,
    LinearAttention,
    SoftmaxAttention,
    position_tokens,
)
from ..solver import apply_operators, pretrain, trajectory, wishart_operators

INSTANCE_SEED = 24


def _spectral_norm(*arguments) -> Float[Array, " tasks"]:
    return contraction_certificate(*arguments, depth=1).spectral_norm


def _spectral_radius(*arguments) -> Float[Array, " tasks"]:
    return contraction_certificate(*arguments, depth=1).spectral_radius


class RichardsonCertificate(AbstractTheory):
    """`‖e_l‖₂ ≤ ‖I − P H‖₂^l ‖e_0‖₂` at every depth `l ≥ 1`, for held-out tasks and four families of preconditioners.

    The operators are `H = S^{1/2} W S^{1/2}` with `W` a Wishart matrix over its `8 K` degrees of freedom and `S`
    diagonal from 0.1 to 1, equally spaced in the logarithm. Solutions are standard normal, starts zero, right-hand
    sides `H z*`. Attention has four heads of size 8 on position tokens, and 16 frequencies per head where it has any.

    Building a configuration trains one preconditioner of each family on the loss at depth `L` over all tasks, by Adam
    with a learning rate that falls to zero along a cosine, and freezes it: trained matrices, held-out operators and
    held-out solutions are fields. The bound does not depend on the training: with zero steps, `P` is frozen where it
    starts, at the identity plus what ``disturbance`` adds.

    The prediction takes the norm of `I − P H`; the measurement runs the iteration and subtracts the solution. That
    matrix is not normal. Where its norm exceeds 1 the bound holds and says nothing.

    The counterfeit puts the spectral radius in place of the norm.

    Attributes
    ----------
    preconditioners
        The frozen `P` of each family, in the order of ``observables``.
    rate
        What is raised to the power `l`, one number per task, from `P`, `H` and `e_0`.
    """

    preconditioners: Float[Array, "families size size"]
    operators: Float[Array, "tasks size size"]
    solutions: Float[Array, "tasks size"]
    depth: int = eqx.field(static=True)
    rate: Callable = eqx.field(static=True, default=_spectral_norm)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.BOUND
    rule: ClassVar[BoundRule] = BoundRule()
    source: ClassVar[str] = """@book{saad2003iterative,
  author = {Saad, Yousef},
  title = {Iterative Methods for Sparse Linear Systems},
  edition = {2},
  publisher = {SIAM},
  year = {2003},
}"""
    statement: ClassVar[str] = (
        "The Euclidean norm of the error of a frozen decoder after l steps is at most the l-th power of the spectral "
        "norm of I - PH times the norm of the first error, for every held-out task and depth, without exception."
    )
    observables: ClassVar[tuple[str, ...]] = ("free_linear", "linear_attention", "softmax_attention", "flexformer")
    assumptions: ClassVar[tuple[str, ...]] = (
        "the preconditioner does not change from step to step",
        "the right-hand side is H z*",
    )
    breaks_when: ClassVar[str] = "The preconditioner depends on the iterate or on the layer."
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 16,
        tasks: int = 64,
        held_out: int = 64,
        depth: int = 8,
        steps: int = 0,
        learning_rate: float = 1e-2,
        disturbance: float = 1.0,
        instance_seed: int = INSTANCE_SEED,
    ) -> "RichardsonCertificate":
        """Four preconditioners frozen at a disturbed start, and 64 held-out tasks.

        Parameters
        ----------
        dtype
            Of all arrays.
        size, depth
            `K` and `L`.
        tasks, held_out
            How many tasks train, and how many are held out.
        steps, learning_rate
            Of the training; the rate is that of the first step.
        disturbance
            Standard deviation of what is added to the gain of each head at the start, and `K^{1/2}` times that of what
            is added to each entry of the free matrix.
        instance_seed
            Of tasks and starts.
        """
        random = np.random.default_rng(instance_seed)
        factors = random.standard_normal((tasks + held_out, size, 8 * size))
        operators = jnp.asarray(wishart_operators(factors, np.logspace(-1, 0, size)), dtype)
        solutions = jnp.asarray(random.standard_normal((tasks + held_out, size)), dtype)
        matrices = []
        for preconditioner in _starts(size, disturbance, random, dtype):
            if steps:
                preconditioner = pretrain(
                    preconditioner,
                    operators[:tasks],
                    apply_operators(operators[:tasks], solutions[:tasks]),
                    jnp.zeros_like(solutions[:tasks]),
                    solutions[:tasks],
                    depth=depth,
                    optimizer=optax.adam(optax.cosine_decay_schedule(learning_rate, steps)),
                    steps=steps,
                ).parameters
            matrices.append(eqx.filter_jit(type(preconditioner).matrix)(preconditioner, operators[:1]))
        return cls(
            preconditioners=jnp.stack(matrices), operators=operators[tasks:], solutions=solutions[tasks:], depth=depth
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 256,
        held_out: int = 512,
        steps: int = 1500,
        disturbance: float = 0.0,
        **options,
    ) -> "RichardsonCertificate":
        """Four preconditioners trained on 256 tasks for 1500 steps, and 512 held-out tasks; else as ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, held_out=held_out, steps=steps, disturbance=disturbance, **options)

    def grid(self) -> Float[Array, " points"]:
        """Depths 1 to ``depth``."""
        return jnp.arange(1, self.depth + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The bound of each task at each depth."""
        first = jnp.linalg.norm(self.solutions, axis=1)
        bounds = {}
        for name, preconditioner in zip(self.observables, self.preconditioners, strict=True):
            rate = self.rate(preconditioner, self.operators, -self.solutions)
            bounds[name] = Curve(grid, rate[None] ** grid[:, None] * first[None])
        return bounds

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Norms of the iterates minus the solution."""
        del key
        right_hand_sides = apply_operators(self.operators, self.solutions)

        def errors(preconditioner):
            initial = jnp.zeros_like(self.solutions)
            iterates = trajectory(preconditioner, self.operators, right_hand_sides, initial, depth=self.depth)
            norms = jnp.linalg.norm(iterates - self.solutions[None], axis=2)
            return norms.at[grid.astype(int)].get(mode="fill", fill_value=jnp.nan)

        norms = jax.lax.map(errors, self.preconditioners)
        return {name: Curve(grid, norms[number]) for number, name in enumerate(self.observables)}

    def counterfeit(self) -> "RichardsonCertificate":
        """The spectral radius of `I − P H` in place of its norm."""
        return dataclasses.replace(self, rate=_spectral_radius)


def _starts(size, disturbance, random, dtype) -> tuple[AbstractPreconditioner, ...]:
    """One preconditioner of each family: projections `N(0, 1/d)`, frequencies `N(0, 1)`, gains 1/40, skip 1."""
    heads, head_size, frequencies = 4, 8, 16
    tokens = position_tokens(size, dtype=dtype)

    def draw(*shape):
        return random.standard_normal(shape)

    projections = draw(2, heads, tokens.shape[1], head_size) / tokens.shape[1] ** 0.5
    gains = 0.1 / heads + disturbance * draw(heads)
    spectrum, amplitudes = draw(2, heads, frequencies, head_size), np.zeros((heads, frequencies))
    queries, keys, gains, skip, spectrum, amplitudes = (
        jnp.asarray(array, dtype) for array in (*projections, gains, np.ones(()), spectrum, amplitudes)
    )
    return (
        FreeLinear(jnp.asarray(np.eye(size) + disturbance * draw(size, size) / size**0.5, dtype)),
        LinearAttention(tokens, queries, keys, gains, skip),
        SoftmaxAttention(tokens, queries, keys, gains, skip),
        Flexformer(tokens, queries, keys, gains, skip, spectrum, amplitudes),
    )
