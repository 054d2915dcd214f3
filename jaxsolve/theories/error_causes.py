"""The error of a learned solver is traced to the cause that was built into it."""

import dataclasses
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from .._types import Key
from ..certificates import DiagnosedTasks, best_free_preconditioner, diagnose, prompted_diffusion
from ..evidence import AbstractTheory, BoundRule, Curve, Kind
from ..preconditioners import FreeLinear
from ..solver import pretrain

INSTANCE_SEED = 56


class Situation(NamedTuple):
    """A trained decoder behind an encoder, the best free matrix for its depth, and tasks.

    ``responses`` takes a white load to a solution of mean square 1.
    """

    preconditioner: Float[Array, "size size"]
    best: Float[Array, "size size"]
    operators: Float[Array, "tasks size size"]
    estimates: Float[Array, "tasks size size"]
    responses: Float[Array, "tasks size size"]
    training_operators: Float[Array, "trained size size"]
    training_solutions: Float[Array, "trained size"]


class ErrorCauses(AbstractTheory):
    """In four situations with one built-in fault each, no other cause has half of the error.

    The systems are diffusion problems on a line with four unknown coefficients, which a least-squares encoder
    estimates from a prompt. The situations, in the order of the grid:

    1. short noisy prompts, in front of a decoder that is good otherwise;
    2. two training tasks for a free matrix, with exact prompts;
    3. multiples of the identity in the place of a matrix, trained on many tasks;
    4. one step of the best matrix.

    In each of them the error is shared out by giving the true operator, by training tasks in the place of fresh ones,
    by the best free matrix and by depth to convergence. What is averaged over are the solutions of held-out tasks: each
    replicate draws them anew, and the bound holds in every one.

    The counterfeit expects the fault of the next situation.

    Attributes
    ----------
    situations
        Frozen decoders and tasks.
    largest_share
        What another cause has at most: one half. The cause at fault has at most four times as much.
    built_in
        The number of the fault in each situation, in the order of `Diagnosis.causes`.
    """

    situations: tuple[Situation, ...]
    largest_share: Float[Array, ""]
    built_in: tuple[int, ...] = eqx.field(static=True)
    depths: tuple[int, ...] = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=4)

    kind: ClassVar[Kind] = Kind.BOUND
    rule: ClassVar[BoundRule] = BoundRule()
    source: ClassVar[str] = """@article{wen2026learning,
  author = {Wen, Shizheng and Chi, Mingyuan and Yu, Tianwei and Moseley, Ben and Michelis, Mike Yan and Ren, Pu and
    Sun, Hao and Mishra, Siddhartha},
  title = {Learning, Solving and Optimizing {PDE}s with {TensorGalerkin}},
  year = {2026},
  eprint = {2602.05052},
  archivePrefix = {arXiv},
}"""
    statement: ClassVar[str] = (
        "Where one of prompt, training tasks, architecture and depth is at fault, the experiments that repair the four "
        "one after the other take away at most half of the risk (a mean over tasks and unknowns, without 1/2) for each "
        "of the other three, and so more for the one at fault than for any other."
    )
    observables: ClassVar[tuple[str, ...]] = ("other_causes",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "held-out tasks have the law of the training tasks",
        "the best free matrix was fitted to other tasks than those of the training",
    )
    breaks_when: ClassVar[str] = "Several causes are at fault together: then no one of them need dominate."
    effect: ClassVar[float] = 0.2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 8,
        tasks: int = 256,
        held_out: int = 128,
        depth: int = 5,
        steps: int = 200,
        noise: float = 0.5,
        instance_seed: int = INSTANCE_SEED,
        replicates: int = 4,
    ) -> "ErrorCauses":
        """Eight unknowns, 256 training and 128 held-out tasks, decoders of five steps."""
        random = np.random.default_rng(instance_seed)

        def drawn(count, noise=0.0):
            found = prompted_diffusion(count, size=size, prompt_size=4, noise=noise, generator=random)
            return (jnp.asarray(array, dtype) for array in found[:3])

        operators, _, solutions = drawn(tasks)
        fresh, _, fresh_solutions = drawn(2 * tasks)
        unseen, exact, _ = drawn(held_out)
        noisy_unseen, noisy, _ = drawn(held_out, noise)
        best = best_free_preconditioner(fresh, fresh_solutions, depth=depth, steps=steps).entries
        shallow = best_free_preconditioner(fresh, fresh_solutions, depth=1, steps=steps).entries
        few = _trained(operators[:2], solutions[:2], depth, 2 * steps)
        scalar = _scalar(operators, solutions, depth)
        known, scaled = (operators, solutions), _responses(unseen)
        return cls(
            situations=(
                Situation(best, best, noisy_unseen, noisy, _responses(noisy_unseen), *known),
                Situation(few, best, unseen, exact, scaled, operators[:2], solutions[:2]),
                Situation(scalar, best, unseen, exact, scaled, *known),
                Situation(shallow, shallow, unseen, exact, scaled, *known),
            ),
            largest_share=jnp.asarray(0.5, dtype),
            built_in=(0, 1, 2, 3),
            depths=(depth, depth, depth, 1),
            replicates=replicates,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 16,
        tasks: int = 1024,
        held_out: int = 512,
        steps: int = 600,
        **options,
    ) -> "ErrorCauses":
        """16 unknowns, 1024 training and 512 held-out tasks; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, size=size, tasks=tasks, held_out=held_out, steps=steps, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of the situations, from 1."""
        return jnp.arange(1, len(self.situations) + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """One half for every cause but the built-in one, which may exceed the whole where other parts are negative."""
        at_fault = jnp.arange(4)[None, :] == jnp.asarray(self.built_in)[:, None]
        return {"other_causes": Curve(grid, jnp.where(at_fault, 4 * self.largest_share, self.largest_share))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Shares of the four causes, for new solutions of the held-out tasks."""
        shares = []
        for number, (situation, depth) in enumerate(zip(self.situations, self.depths, strict=True)):
            tasks, size = situation.operators.shape[:2]
            flat = jax.random.normal(jax.random.fold_in(key, number), (tasks * size,), self.dtype)
            loads = flat.reshape(tasks, size)
            solutions = jnp.einsum("tij,tj->ti", situation.responses, loads, precision="highest")
            found = diagnose(
                _Shared(situation.preconditioner),
                _identity,
                DiagnosedTasks(situation.training_operators, situation.training_solutions),
                DiagnosedTasks(situation.operators, solutions, situation.estimates),
                _Shared(situation.best),
                depth=depth,
                converged_depth=64,
                throw=False,
            )
            shares.append(found.shares)
        return {"other_causes": Curve(grid, jnp.stack(shares))}

    def counterfeit(self) -> "ErrorCauses":
        """The faults moved by one situation."""
        return dataclasses.replace(self, built_in=(1, 2, 3, 0))


class _Shared(eqx.Module):
    entries: Array

    def __call__(self, operators):
        return self.entries


def _identity(prompts):
    return prompts


def _responses(operators):
    """Inverses, scaled so that a white load gives a solution of mean square 1."""
    inverses = jnp.linalg.inv(operators)
    scale = jnp.sqrt(operators.shape[1] / jnp.sum(inverses**2, axis=(1, 2)))
    return scale[:, None, None] * inverses


def _sides(operators, solutions):
    return jnp.einsum("tij,tj->ti", operators, solutions, precision="highest")


def _trained(operators, solutions, depth, steps):
    start = FreeLinear.initialise(operators.shape[1], dtype=operators.dtype)
    optimizer = optax.adam(optax.cosine_decay_schedule(3e-2, steps))
    arrays = (operators, _sides(operators, solutions), jnp.zeros_like(solutions), solutions)
    return pretrain(start, *arrays, depth=depth, optimizer=optimizer, steps=steps).parameters.entries


def _scalar(operators, solutions, depth):
    """The best multiple of the identity, out of a hundred."""
    eigenvalues, vectors = jnp.linalg.eigh(operators)
    energies = jnp.einsum("tij,ti->tj", vectors, solutions) ** 2
    steps = jnp.linspace(0.05, 2, 100, dtype=operators.dtype)
    risks = jax.vmap(lambda step: jnp.mean((1 - step * eigenvalues) ** (2 * depth) * energies))(steps)
    return steps[jnp.argmin(risks)] * jnp.eye(operators.shape[1], dtype=operators.dtype)
