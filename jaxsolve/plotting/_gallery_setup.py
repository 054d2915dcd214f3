"""What figures of the gallery share: random systems, trained preconditioners, a figure with a title."""

from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int
from matplotlib.figure import Figure

from .._train import Descent
from ..preconditioners import AbstractPreconditioner, FreeLinear, SoftmaxAttention, position_tokens
from ..solver import apply_operators, pretrain
from ._figure import DOTS_PER_INCH

SEED = 30
DEPTH = 8


class Systems(NamedTuple):
    """Random linear systems with Wishart operators `S^{1/2} W S^{1/2}`, solutions `N(0, I)`, starts at zero.

    `S` is diagonal with 16 entries from 0.1 to 1, spaced evenly in the logarithm; `W` has 128 degrees of freedom and
    mean `I`.
    """

    operators: Float[Array, "tasks size size"]
    solutions: Float[Array, "tasks size"]
    initial: Float[Array, "tasks size"]


def wishart_systems(tasks: int, *, seed: int) -> Systems:
    """``tasks`` independent [`Systems`][] of size 16."""
    generator = np.random.default_rng(seed)
    scale = np.sqrt(np.logspace(-1, 0, 16))
    rows = generator.standard_normal((tasks, 128, 16)) * scale
    operators = np.einsum("tni,tnj->tij", rows, rows) / 128
    solutions = generator.standard_normal((tasks, 16))
    return Systems(*(jnp.asarray(array, float) for array in (operators, solutions, np.zeros_like(solutions))))


class Trained(NamedTuple):
    """Preconditioners saved while training a free matrix on [`Systems`][]."""

    steps: Int[np.ndarray, " saved"]
    preconditioners: Float[np.ndarray, "saved size size"]
    systems: Systems


def trained(preconditioner: AbstractPreconditioner, systems: Systems, *, depth: int, steps: int, saved: int) -> Descent:
    """Adam at a rate that falls from 0.01 along a cosine; the records are `P` for the first system."""
    return pretrain(
        preconditioner,
        systems.operators,
        apply_operators(systems.operators, systems.solutions),
        systems.initial,
        systems.solutions,
        depth=depth,
        optimizer=optax.adam(optax.cosine_decay_schedule(1e-2, steps)),
        steps=steps,
        observe=eqx.Partial(_matrix, systems.operators[:1]),
        record_every=steps // saved,
    )


def _matrix(operators, preconditioner):
    return preconditioner.matrix(operators)


@cache
def trained_preconditioner(steps: int = 800) -> Trained:
    """A free matrix from `P = I`, trained at depth 8 on 128 systems by Adam, saved 40 times."""
    systems = wishart_systems(128, seed=SEED)
    run = trained(FreeLinear(jnp.eye(16)), systems, depth=DEPTH, steps=steps, saved=40)
    return Trained(np.asarray(run.recorded_steps), np.asarray(run.records), systems)


@cache
def trained_attention(steps: int = 400) -> tuple[SoftmaxAttention, SoftmaxAttention]:
    """Softmax attention of two heads before and after training on 64 of the same kind of systems."""
    before = SoftmaxAttention.initialise(position_tokens(16), heads=2, key=jax.random.key(SEED))
    return before, trained(before, wishart_systems(64, seed=SEED), depth=DEPTH, steps=steps, saved=1).parameters


def new_figure(
    rows: int, columns: int, *, title: str, size: tuple[float, float] = (10.5, 4.2)
) -> tuple[Figure, np.ndarray]:
    """A figure with a title over all its axes."""
    figure = Figure(figsize=size, dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    figure.suptitle(title, fontweight="bold", x=0.01, horizontalalignment="left")
    return figure, axes
