"""The risk behind an encoder, and its parts, averaged over right-hand sides without sampling any."""

from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from .._types import Key
from ..certificates import compose_risk, prompted_diffusion
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..preconditioners import Flexformer, position_tokens
from ..solver import pretrain

INSTANCE_SEED = 48


class CompositionRisk(AbstractTheory):
    """Total, decoder part and floor of a composed risk as squared norms of matrices, for `b ~ N(0, s² I)`.

    With the estimated operators `Â` given, and `M = I − P Â`,

        decoder `s²/K ‖M^l Â⁻¹‖²`,   floor `s²/K ‖Â⁻¹ − A⁻¹‖²`,   total `s²/K ‖(I − M^l) Â⁻¹ − A⁻¹‖²`

    in Frobenius norms, averaged over held-out tasks; the interaction is what is left. `s` makes the mean square of a
    solution 1. Risks are means over unknowns and tasks without 1/2.

    The systems are diffusion problems on a line with four coefficients, which a least-squares encoder estimates from
    noisy prompts; estimates outside the admissible box are moved to its edge. The decoder starts at zero. Its
    preconditioner is a non-stationary Flexformer of four heads on position tokens, trained on true operators at the
    depth at which it is used, by Adam with a rate that falls to zero along a cosine.

    Floor and decoder part are set by different things, the noise of the prompts and the training: whatever two numbers
    are printed, there is a noise and a number of training steps that give them.

    The counterfeit takes `A` for `Â` in the iteration.

    Attributes
    ----------
    iterated
        The operators whose powers the prediction takes: `Â`.
    """

    preconditioner: Float[Array, "size size"]
    iterated: Float[Array, "tasks size size"]
    estimates: Float[Array, "tasks size size"]
    operators: Float[Array, "tasks size size"]
    depth: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1000)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@article{zhang2026flexformer,
  author = {Zhang, Haoran and Zhou, Feng},
  title = {Flexformer: Flexible Linear Transformer with Learnable Attention Kernel},
  year = {2026},
  eprint = {2606.27748},
  archivePrefix = {arXiv},
}"""
    statement: ClassVar[str] = (
        "Given operators and their estimates, the mean over normal right-hand sides of total risk, decoder part and "
        "floor (means over tasks and unknowns, without 1/2) are squared Frobenius norms of matrices built "
        "from powers of I - P A^ and the two inverses."
    )
    observables: ClassVar[tuple[str, ...]] = ("total", "decoder", "floor")
    assumptions: ClassVar[tuple[str, ...]] = (
        "right-hand sides are centred and white, and independent of the prompts",
        "the preconditioner does not change from step to step",
    )
    breaks_when: ClassVar[str] = "Right-hand sides prefer directions, or take part in the prompt."
    effect: ClassVar[float] = 0.05

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 16,
        tasks: int = 32,
        held_out: int = 32,
        prompt_size: int = 4,
        noise: float = 0.6,
        depth: int = 8,
        steps: int = 30,
        learning_rate: float = 1e-2,
        instance_seed: int = INSTANCE_SEED,
        replicates: int = 1000,
    ) -> "CompositionRisk":
        """32 tasks to train on for 30 steps, and 1000 draws of right-hand sides for 32 held-out tasks.

        Parameters
        ----------
        dtype
            Of all arrays.
        size, depth
            `K` and `L`.
        tasks, held_out
            How many tasks train, and how many are held out.
        prompt_size, noise
            Pairs of a prompt, and the standard deviation of the noise on a load, relative to the load.
        steps, learning_rate
            Of the training; the rate is that of the first step.
        instance_seed
            Of tasks, prompts and the start of the training.
        replicates
            Draws of right-hand sides.
        """
        random = np.random.default_rng(instance_seed)
        draw = partial(prompted_diffusion, size=size, prompt_size=prompt_size, noise=noise, generator=random)
        training, unseen = draw(tasks), draw(held_out)
        start = Flexformer.initialise(position_tokens(size), key=jax.random.key(instance_seed))
        start = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), start)
        operators, solutions = (jnp.asarray(array, dtype) for array in (training.operators, training.solutions))
        trained = pretrain(
            start,
            operators,
            jnp.einsum("tij,tj->ti", operators, solutions, precision="highest"),
            jnp.zeros_like(solutions),
            solutions,
            depth=depth,
            optimizer=optax.adam(optax.cosine_decay_schedule(learning_rate, steps)),
            steps=steps,
        ).parameters
        estimates, truth = (jnp.asarray(array, dtype) for array in (unseen.estimates, unseen.operators))
        return cls(
            preconditioner=trained.matrix(truth[:1]),
            iterated=estimates,
            estimates=estimates,
            operators=truth,
            depth=depth,
            replicates=replicates,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 256,
        held_out: int = 512,
        steps: int = 300,
        **options,
    ) -> "CompositionRisk":
        """256 tasks, 300 steps, 512 held-out tasks; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, held_out=held_out, steps=steps, **options)

    def grid(self) -> Float[Array, " points"]:
        """Depths 0 to ``depth``."""
        return jnp.arange(self.depth + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Frobenius norms."""
        product = partial(jnp.matmul, precision="highest")
        inverse, truth = jnp.linalg.inv(self.estimates), jnp.linalg.inv(self.operators)
        size = truth.shape[1]
        variance = size / jnp.sum(truth**2, axis=(1, 2))
        identity = jnp.broadcast_to(jnp.eye(size, dtype=self.dtype), truth.shape)
        iteration = identity - product(self.preconditioner[None], self.iterated)

        def risk(matrices):
            return jnp.mean(variance * jnp.sum(matrices**2, axis=(1, 2))) / size

        def multiply(power, _):
            unfinished = product(power, inverse)
            return product(iteration, power), (risk(inverse - unfinished - truth), risk(unfinished))

        _, (total, decoder) = jax.lax.scan(multiply, identity, length=self.depth + 1)
        floor = jnp.broadcast_to(risk(inverse - truth), total.shape)
        found = (total, decoder, floor)
        return {name: Curve(grid, value) for name, value in zip(self.observables, found, strict=True)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """The split of runs on drawn right-hand sides."""
        tasks, size = self.operators.shape[:2]
        # Drawn flat: several axes under vmap take three times as long to compile.
        sides = jax.random.normal(key, (tasks * size,), self.dtype).reshape(tasks, size)
        values, vectors = jnp.linalg.eigh(self.operators)
        sides = sides * jnp.sqrt(size / jnp.sum(values**-2, axis=1))[:, None]
        modes = jnp.einsum("tij,ti->tj", vectors, sides, precision="highest") / values
        solutions = jnp.einsum("tij,tj->ti", vectors, modes, precision="highest")
        initial = jnp.zeros_like(solutions)
        found = compose_risk(
            self.preconditioner, self.estimates, sides, solutions, initial, depth=self.depth, throw=False
        )
        values = (found.total, found.decoder, jnp.broadcast_to(found.floor, found.total.shape))
        return {name: Curve(grid, value) for name, value in zip(self.observables, values, strict=True)}

    def counterfeit(self) -> "CompositionRisk":
        """Powers of `I − P A`."""
        return eqx.tree_at(lambda theory: theory.iterated, self, self.operators)
