"""Which of four causes a run's error comes from."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from .._arguments import checked_depth
from .._results import RESULTS, first_failure, raise_failures
from .._types import Scalar
from ..preconditioners import AbstractPreconditioner, FreeLinear
from ..solver import pretrain, rollout, trajectory
from ._shapes import check_tasks


class DiagnosedTasks(NamedTuple):
    """Tasks `A x* = b`, and the prompts that an encoder reads."""

    operators: Float[Array, "tasks size size"]
    """`A`, the truth."""
    solutions: Float[Array, "tasks size"]
    """`x*`."""
    prompts: PyTree = None
    """What the encoder takes; of the held-out tasks only."""


class Diagnosis(eqx.Module):
    """The risk of a run, shared out among four causes; from [`diagnose`][].

    All are mean squares over tasks and unknowns without a factor 1/2. The four parts and the remainder add up to the
    total. A part may be negative: with training tasks that are fitted better than any one matrix fits fresh ones, the
    architecture's is.

    Attributes
    ----------
    total
        Risk of the run: estimated operators, held-out tasks.
    parts
        What goes away when the true operators are given, when held-out tasks are replaced by training tasks, when the
        preconditioner is replaced by the best free one, and when that one runs to convergence; in the order of
        ``causes``, each on top of those before it.
    standard_errors
        Of the parts, over tasks; paired where both risks are those of the same tasks.
    remainder
        What is left after all four.
    converged_depth
        The depth at which the best free preconditioner left the remainder.
    result
        Whether all risks are finite.
    """

    causes: ClassVar[tuple[str, ...]] = ("prompt", "pretraining tasks", "architecture", "depth")

    total: Scalar
    parts: Float[Array, "4"]
    standard_errors: Float[Array, "4"]
    remainder: Scalar
    converged_depth: Array
    result: RESULTS

    @property
    def shares(self) -> Float[Array, "4"]:
        """The parts over the total."""
        return self.parts / self.total

    @property
    def dominant(self) -> str:
        """The cause of the largest part."""
        return self.causes[int(jnp.argmax(self.parts))]

    @property
    def clear(self) -> bool:
        """Whether the largest part exceeds every other one by three standard errors of the difference or more."""
        first = int(jnp.argmax(self.parts))
        gaps = self.parts[first] - self.parts
        allowed = 3 * jnp.sqrt(self.standard_errors[first] ** 2 + self.standard_errors**2)
        return bool(jnp.all((gaps > allowed) | (jnp.arange(4) == first)))


Matrices = Callable[[Float[Array, "tasks size size"]], Array]


def diagnose(
    preconditioner: AbstractPreconditioner | Matrices,
    encoder: Callable[[PyTree], Float[Array, "tasks size size"]],
    training: DiagnosedTasks,
    held_out: DiagnosedTasks,
    best: AbstractPreconditioner | Matrices,
    *,
    depth: int,
    converged_depth: int | None = None,
    throw: bool = True,
) -> Diagnosis:
    """Attribute the error of a learned solver to prompt, pretraining tasks, architecture and depth.

    Each cause has the experiment that isolates it, and the experiments are made one on top of the other, so that the
    differences of their risks add up to the whole:

    - the run itself: operators from ``encoder``, held-out tasks, ``depth`` steps;
    - the true operators in place of the estimated ones: the difference is the prompt's;
    - the tasks of the training in place of held-out ones: the difference is that of too few training tasks;
    - the best free preconditioner in place of the trained one: the difference is the architecture's;
    - this one run until its risk is smallest: the difference is that of the depth.

    The order matters where causes can stand in for each other: a deeper iteration makes up for a worse architecture.
    Here the depth is charged only with what no shared matrix can do in as many steps.

    Parameters
    ----------
    preconditioner
        Any preconditioner of the library, or a function from operators to matrices: one for all or one per task.
    encoder
        From the prompts of the held-out tasks to operators.
    training, held_out
        What the preconditioner was trained on, and fresh tasks with prompts. All starts are zero, and right-hand
        sides are `A x*`.
    best
        The free preconditioner to compare with, from [`best_free_preconditioner`][] on a third set of tasks, larger
        than the first; or any other. One that was fitted to the training tasks themselves would flatter the
        comparison.
    depth
        `L`, static.
    converged_depth
        Up to which depth the last experiment looks for the smallest risk; 32 times ``depth`` by default.
    throw
        Whether to raise where a risk is not finite; otherwise ``result`` tells.

    Raises
    ------
    ValueError
        For a depth below 1, shapes and dtypes that do not fit, an encoder that returns something else than one
        operator per task, and risks that are not finite.

    >>> tasks = DiagnosedTasks(jnp.ones((2, 1, 1)), jnp.ones((2, 1)), 2 * jnp.ones((2, 1, 1)))
    >>> half = lambda operators: 0.5 * jnp.ones((1, 1))
    >>> found = diagnose(half, lambda prompts: prompts, tasks, tasks, lambda _: 0.75 * jnp.ones((1, 1)), depth=1)
    >>> found.dominant, found.shares.tolist()
    ('architecture', [0.0, 0.0, 0.75, 0.25])
    """
    depth = checked_depth(depth)
    longest = 32 * depth if converged_depth is None else checked_depth(converged_depth)
    if depth < 1 or longest < depth:
        raise ValueError(
            f"A diagnosis takes a depth of at least 1, and converges no earlier; got depth={depth}, "
            f"converged_depth={converged_depth}."
        )
    for tasks in (training, held_out):
        check_tasks(tasks.operators, {}, {"solutions": tasks.solutions})
    estimates = encoder(held_out.prompts)
    if estimates.shape != held_out.operators.shape or estimates.dtype != held_out.operators.dtype:
        raise ValueError(
            f"The encoder returns one operator per held-out task, {held_out.operators.shape} of "
            f"{held_out.operators.dtype}; got {estimates.shape} of {estimates.dtype}."
        )
    own, free = _matrices(preconditioner), _matrices(best)
    diagnosis = _diagnosed(
        (own(estimates), own(held_out.operators), own(training.operators), free(training.operators)),
        estimates,
        training[:2],
        held_out[:2],
        depth,
        longest,
    )
    return raise_failures(diagnosis, diagnosis.result, of="diagnoses") if throw else diagnosis


def best_free_preconditioner(
    operators: Float[Array, "tasks size size"],
    solutions: Float[Array, "tasks size"],
    *,
    depth: int,
    steps: int = 600,
    learning_rate: float = 1e-2,
) -> FreeLinear:
    """A free matrix trained on many tasks at one depth, from the inverse of their mean operator.

    Adam with a rate that falls to zero along a cosine; the rate is relative to the mean absolute entry of the start.
    It stands for the best matrix that all tasks can share: take several times more tasks than unknowns, and others
    than those that are diagnosed.

    Parameters
    ----------
    operators, solutions
        `A` and `x*`; the start of every iteration is zero.
    depth
        `L`, static.
    steps, learning_rate
        Of the training.

    Raises
    ------
    ValueError
        As [`jaxsolve.solver.pretrain`][] does; also where the mean operator is singular.

    >>> best_free_preconditioner(jnp.ones((1, 1, 1)), jnp.ones((1, 1)), depth=1, steps=0).entries.tolist()
    [[1.0]]
    """
    check_tasks(operators, {}, {"solutions": solutions})
    start = FreeLinear(jnp.linalg.inv(operators.mean(axis=0)))
    if not steps:
        return start
    scale = float(jnp.mean(jnp.abs(start.entries)))
    optimizer = optax.adam(optax.cosine_decay_schedule(learning_rate * scale, steps))
    sides, initial = _sides(operators, solutions), jnp.zeros_like(solutions)
    run = pretrain(start, operators, sides, initial, solutions, depth=depth, optimizer=optimizer, steps=steps)
    return run.parameters


def _matrices(preconditioner):
    return preconditioner.matrix if isinstance(preconditioner, AbstractPreconditioner) else preconditioner


def _sides(operators, solutions):
    return jnp.einsum("tij,tj->ti", operators, solutions, precision="highest")


@partial(jax.jit, static_argnums=(4, 5))
def _diagnosed(matrices, estimates, training, held_out, depth, longest) -> Diagnosis:
    estimated, true, trained, free = matrices
    unseen, seen = _sides(*held_out), _sides(*training)

    def losses(matrix, operators, sides, solutions):
        final = rollout(matrix, operators, sides, jnp.zeros_like(solutions), depth=depth)
        return jnp.mean((final - solutions) ** 2, axis=1)

    run = losses(estimated, estimates, unseen, held_out[1])
    told = losses(true, held_out[0], unseen, held_out[1])
    known = losses(trained, training[0], seen, training[1])
    iterates = trajectory(free, training[0], seen, jnp.zeros_like(seen), depth=longest)
    matched = jnp.mean((iterates - training[1][None]) ** 2, axis=2)[depth:]
    risks = matched.mean(axis=1)
    smallest = jnp.argmin(jnp.where(jnp.isfinite(risks), risks, jnp.inf))
    parts = (run - told, None, known - matched[0], matched[0] - matched[smallest])
    values = [told.mean() - known.mean() if part is None else part.mean() for part in parts]
    errors = [
        jnp.sqrt(_squared_error(told) + _squared_error(known)) if part is None else jnp.sqrt(_squared_error(part))
        for part in parts
    ]
    parts, total = jnp.stack(values), run.mean()
    return Diagnosis(
        total=total,
        parts=parts,
        standard_errors=jnp.stack(errors),
        remainder=risks[smallest],
        converged_depth=depth + smallest,
        result=first_failure((~jnp.isfinite(jnp.append(parts, total)).all()[None], RESULTS.not_finite)),
    )


def _squared_error(losses):
    return jnp.var(losses) / max(losses.size - 1, 1)
