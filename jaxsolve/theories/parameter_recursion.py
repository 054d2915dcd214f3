"""Training by the hand-written gradient takes the steps of training by backpropagation."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._train import descend
from .._types import Key, Scalar
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..preconditioners import AbstractPreconditioner, Flexformer, position_tokens
from ..solver import adjoint_gradient, training_loss, trajectory, wishart_operators

INSTANCE_SEED = 25


class ParameterRecursion(AbstractTheory):
    """`θ_{s+1} = θ_s − η DP_{θ_s}^*[grad_P L(P_{θ_s})]` is gradient descent on the loss of the whole decoder.

    The loss is `1/(2 N K) Σ_i ‖z_{i,L} − z*_i‖²` over `N` tasks of size `K`, and `DP_θ^*` is the transpose of the
    derivative of `θ ↦ P_θ`, at the parameters of the same step. The prediction takes ``grad_P`` from the adjoint
    recursion and pulls it back through the preconditioner; the measurement trains by automatic differentiation through
    all layers and the preconditioner at once.

    The preconditioner is learnable-kernel attention with two heads. The operators are Wishart matrices over `2 K`
    degrees of freedom and spectrum from 0.1 to 1, each row divided by its diagonal entry, so that they are not
    symmetric. Gains start at `1.2 / K`, the skip at 0.5. Solutions and starts are standard normal.

    The counterfeit leaves `DP^*` as it is at the initial parameters: the recursion of a preconditioner that is linear
    in its parameters.

    Attributes
    ----------
    preconditioner
        `P_θ` at the initial parameters.
    learning_rate
        `η`.
    frozen_derivative
        Whether `DP^*` is that of the initial parameters at every step.
    """

    preconditioner: AbstractPreconditioner
    operators: Float[Array, "tasks size size"]
    solutions: Float[Array, "tasks size"]
    initial: Float[Array, "tasks size"]
    learning_rate: Scalar
    depth: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    record_every: int = eqx.field(static=True)
    frozen_derivative: bool = eqx.field(static=True, default=False)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=1024.0)
    source: ClassVar[str] = """@book{griewank2008evaluating,
  author = {Griewank, Andreas and Walther, Andrea},
  title = {Evaluating Derivatives: Principles and Techniques of Algorithmic Differentiation},
  edition = {2},
  publisher = {SIAM},
  year = {2008},
}"""
    statement: ClassVar[str] = (
        "After any number of steps of plain gradient descent on the training loss (half the mean square error over "
        "tasks and entries), the vector of all parameters is that of the recursion by hand; so is its change since the "
        "start, which is smaller. Both relative, in the Euclidean norm."
    )
    observables: ClassVar[tuple[str, ...]] = ("parameters", "displacement")
    assumptions: ClassVar[tuple[str, ...]] = (
        "plain gradient descent with all tasks at every step",
        "a learning rate at which descent is stable, so that rounding errors do not grow",
    )
    breaks_when: ClassVar[str] = "Descent is unstable: rounding errors then grow from step to step by both routes."
    effect: ClassVar[float] = 1e-3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 6,
        tasks: int = 8,
        depth: int = 6,
        steps: int = 100,
        record_every: int = 20,
        learning_rate: float = 0.1,
        instance_seed: int = INSTANCE_SEED,
    ) -> "ParameterRecursion":
        """Eight tasks of size 6, six layers, 100 steps."""
        random = np.random.default_rng(instance_seed)
        symmetric = wishart_operators(random.standard_normal((tasks, size, 2 * size)), np.logspace(-1, 0, size))
        operators = symmetric / np.diagonal(symmetric, axis1=1, axis2=2)[:, :, None]
        tokens = position_tokens(size, dtype=dtype)
        heads, head_size, frequencies = 2, 4, 4
        drawn = (
            random.standard_normal((2, heads, tokens.shape[1], head_size)) / tokens.shape[1] ** 0.5,
            random.standard_normal((2, heads, frequencies, head_size)),
            *random.standard_normal((2, tasks, size)),
        )
        (queries, keys), spectrum, solutions, initial = (jnp.asarray(array, dtype) for array in drawn)
        gains, skip = jnp.full(heads, 1.2 / size, dtype), jnp.asarray(0.5, dtype)
        amplitudes = jnp.zeros((heads, frequencies), dtype)
        return cls(
            preconditioner=Flexformer(tokens, queries, keys, gains, skip, spectrum, amplitudes),
            operators=jnp.asarray(operators, dtype),
            solutions=solutions,
            initial=initial,
            learning_rate=jnp.asarray(learning_rate, dtype),
            depth=depth,
            steps=steps,
            record_every=record_every,
        )

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, size: int = 16, tasks: int = 64, depth: int = 8, **options
    ) -> "ParameterRecursion":
        """64 tasks of size 16, eight layers; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, size=size, tasks=tasks, depth=depth, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of steps after which parameters are recorded."""
        return jnp.arange(self.record_every, self.steps + 1, self.record_every, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The recursion by hand."""
        return _curves(grid, *_by_hand(self))

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Training with automatic differentiation of the loss."""
        del key
        right_hand_sides = self._right_hand_sides()

        @eqx.filter_value_and_grad
        def loss(preconditioner):
            matrix = preconditioner.matrix(self.operators)
            iterates = trajectory(matrix, self.operators, right_hand_sides, self.initial, depth=self.depth)
            return training_loss(iterates[-1], self.solutions)

        trainable = self.preconditioner.trainable()
        run = descend(
            loss,
            self.preconditioner,
            optax.sgd(self.learning_rate),
            steps=self.steps,
            observe=lambda preconditioner: ravel_pytree(eqx.filter(preconditioner, trainable))[0],
            record_every=self.record_every,
            trainable=trainable,
            throw=False,
        )
        return _curves(grid, run.records[0], run.records[1:])

    def counterfeit(self) -> "ParameterRecursion":
        """`DP^*` of the initial parameters at every step."""
        return dataclasses.replace(self, frozen_derivative=True)

    def _right_hand_sides(self) -> Float[Array, "tasks size"]:
        return jnp.einsum("tij,tj->ti", self.operators, self.solutions, precision="highest")


def _curves(grid, start, recorded) -> dict[str, Curve]:
    return {"parameters": Curve(grid, recorded), "displacement": Curve(grid, recorded - start[None])}


@eqx.filter_jit
def _by_hand(theory):
    parameters, data = eqx.partition(theory.preconditioner, theory.preconditioner.trainable())
    start, unravel = ravel_pytree(parameters)
    arguments = (theory.operators, theory._right_hand_sides(), theory.initial, theory.solutions)

    def matrix(vector):
        return eqx.combine(unravel(vector), data).matrix(theory.operators)

    def step(vector, _):
        now, pull_back = jax.vjp(matrix, vector)
        if theory.frozen_derivative:
            _, pull_back = jax.vjp(matrix, start)
        _, gradient = adjoint_gradient(now, *arguments, depth=theory.depth)
        vector = vector - theory.learning_rate * pull_back(gradient)[0]
        return vector, vector

    _, after_each_step = jax.lax.scan(step, start, length=theory.steps)
    return start, after_each_step[theory.record_every - 1 :: theory.record_every]
