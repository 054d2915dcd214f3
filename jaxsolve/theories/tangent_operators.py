"""What the tangent operators of backpropagation and feedback alignment say about one small step."""

import itertools
from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..feedback import MLP, Backprop, FeedbackAlignment, initial_weights
from ..tangent import kernel, output_kernel

INSTANCE_SEED = 23

Matrices = tuple[Float[Array, "_ _"], ...]


class TangentOperators(AbstractTheory):
    """Speeds, shares and the first step of a run are forms of `K_BP = J Jᵀ` and `K_FA = J J̃ᵀ` in the residual.

    With `r = f − Y` and the loss `‖r‖²/(2N)`, a small step along an update changes the outputs by `−(η/N) K r` and the
    loss by `−(η/N²) rᵀ K r = −(η/N²) rᵀ S r`, where `S = (K + Kᵀ)/2`: the antisymmetric part does not count. The
    output layer's part of the squared gradient is `rᵀ K_out r / rᵀ K_BP r`. A network without biases has
    `P = Σ_l n_l n_{l−1}` parameters, and feedback alignment depends on `D_l = n_l n_{l+1}` numbers per hidden layer.

    The prediction takes the kernels from layerwise Gram matrices. The measurement has one layer after the other written
    out: `J` by automatic differentiation, `J̃` as updates for one output of one example each, the changes as directional
    derivatives of the loss and of the outputs along a step. Parameters are counted as columns of `J`; the numbers `D_l`
    as entries of the feedback matrices on which the updates depend where all units are active.

    The counterfeit takes the kernel of feedback alignment for symmetric: the first index is that of the rule.

    Attributes
    ----------
    inputs, targets
        Gaussian numbers.
    weights
        Of one rectified network per number of hidden layers, no two neighbouring layers of one width.
    feedback
        `(n_l, n_{l+1})` for every hidden layer.
    transposed
        Whether the kernel of feedback alignment is transposed.
    """

    inputs: Float[Array, "examples features"]
    targets: Float[Array, "examples outputs"]
    weights: tuple[Matrices, ...]
    feedback: tuple[Matrices, ...]
    transposed: bool = eqx.field(static=True, default=False)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=128.0)
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, section 1}
}"""
    statement: ClassVar[str] = (
        "A small step of backpropagation or feedback alignment on ||f - Y||^2/(2N) moves the outputs by -eta K r / N "
        "and the loss by -eta r^T K r / N^2, with K the product J J~^T of the Jacobian and the rule's updates; the "
        "output layer has the share r^T K_out r / r^T K r of the squared gradient."
    )
    observables: ClassVar[tuple[str, ...]] = (
        "backprop_operator",
        "feedback_operator",
        "backprop_velocity",
        "feedback_velocity",
        "backprop_speed",
        "feedback_speed",
        "output_share",
        "parameter_count",
        "feedback_dimension",
    )
    assumptions: ClassVar[tuple[str, ...]] = (
        "rectified hidden layers, a linear output layer, no biases",
        "no pre-activation is zero",
    )
    breaks_when: ClassVar[str] = "A step is finite: velocities and speeds are derivatives."
    effect: ClassVar[float] = 1e-3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        examples: int = 6,
        hidden: tuple[int, ...] = (9, 5, 8),
        features: int = 7,
        outputs: int = 3,
        instance_seed: int = INSTANCE_SEED,
    ) -> "TangentOperators":
        """Six examples, networks with the first one, two and three of the hidden widths 9, 5 and 8."""
        generator = np.random.default_rng(instance_seed)

        def normal(*shape):
            return jnp.asarray(generator.standard_normal(shape), dtype)

        layers = [(features, *hidden[:depth], outputs) for depth in range(1, len(hidden) + 1)]
        return cls(
            inputs=normal(examples, features),
            targets=normal(examples, outputs),
            weights=tuple(initial_weights(widths, generator, dtype=dtype) for widths in layers),
            feedback=tuple(
                tuple(normal(*shape) / shape[1] ** 0.5 for shape in itertools.pairwise(widths[1:])) for widths in layers
            ),
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        examples: int = 24,
        hidden: tuple[int, ...] = (40, 24, 32, 20),
        features: int = 16,
        outputs: int = 4,
        **options,
    ) -> "TangentOperators":
        """24 examples, hidden widths 40, 24, 32 and 20."""
        return cls.quick(dtype=dtype, examples=examples, hidden=hidden, features=features, outputs=outputs, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of hidden layers."""
        return jnp.asarray([len(matrices) for matrices in self.feedback], self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Forms of the kernels."""
        columns = [
            _forms(weights, feedback, self.inputs, self.targets, self.transposed)
            for weights, feedback in zip(self.weights, self.feedback, strict=True)
        ]
        return self._curves(grid, columns)

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Derivatives along one step."""
        del key
        columns = [
            _derivatives(weights, feedback, self.inputs, self.targets)
            for weights, feedback in zip(self.weights, self.feedback, strict=True)
        ]
        return self._curves(grid, columns)

    def counterfeit(self) -> "TangentOperators":
        """The kernel of feedback alignment transposed."""
        return replace(self, transposed=True)

    def _curves(self, grid, columns) -> dict[str, Curve]:
        longest = len(self.feedback[-1])
        rows = [[*column[:-1], jnp.pad(column[-1], (0, longest - column[-1].size))] for column in columns]
        values = (jnp.stack(row) for row in zip(*rows, strict=True))
        return {name: Curve(grid, value) for name, value in zip(self.observables, values, strict=True)}


@eqx.filter_jit
def _forms(weights, feedback, inputs, targets, transposed):
    network = MLP(weights)
    exact, other = (kernel(network, inputs, rule) for rule in (Backprop(), FeedbackAlignment(feedback)))
    if transposed:
        other = other.T
    residual = (network(inputs) - targets).ravel()
    examples = len(inputs)

    def form(operator):
        return jnp.vdot(residual, _product(operator, residual))

    return (
        exact,
        other,
        *(-_product(operator, residual) / examples for operator in (exact, other)),
        *(form((operator + operator.T) / 2) / examples**2 for operator in (exact, other)),
        form(output_kernel(network, inputs)) / form(exact),
        jnp.asarray(sum(n * m for n, m in itertools.pairwise(network.widths)), inputs.dtype),
        jnp.asarray([n * m for n, m in itertools.pairwise(network.widths[1:])], inputs.dtype),
    )


@jax.jit
def _derivatives(weights, feedback, inputs, targets):
    examples, outputs = targets.shape

    def flat(arrays):
        return jnp.concatenate([array.ravel() for array in arrays])

    def loss(weights):
        return jnp.sum((_layers(weights, inputs)[-1] - targets) ** 2) / (2 * examples)

    def update(cotangent, feedback, layers=_layers(weights, inputs)):
        """The updates of feedback alignment for one cotangent of the outputs."""
        found = []
        for index in range(len(weights) - 1, -1, -1):
            found.append(_product(cotangent.T, layers[index]))
            if index > 0:
                cotangent = jnp.where(layers[index] > 0, _product(cotangent, feedback[index - 1].T), 0)
        return tuple(reversed(found))

    jacobian = jax.jacrev(lambda weights: _layers(weights, inputs)[-1].ravel())(weights)
    jacobian = jnp.concatenate([leaf.reshape(examples * outputs, -1) for leaf in jacobian], axis=1)
    units = jnp.eye(examples * outputs, dtype=inputs.dtype).reshape(-1, examples, outputs)
    updates = jnp.stack([flat(update(unit, feedback)) for unit in units])
    residual = (_layers(weights, inputs)[-1] - targets) / examples
    gradient, direction = jax.grad(loss)(weights), update(residual, feedback)

    def along(function, step):
        return jax.jvp(function, (weights,), (jax.tree.map(jnp.negative, step),))[1]

    active = _layers(tuple(jnp.abs(weight) for weight in weights), jnp.abs(inputs))
    dependence = jax.jacfwd(lambda matrices: flat(update(residual, matrices, active)))(feedback)
    counts = [jnp.sum(jnp.any(leaf != 0, axis=0)).astype(inputs.dtype) for leaf in dependence]
    squares = [jnp.sum(part**2) for part in gradient]
    return (
        _product(jacobian, jacobian.T),
        _product(jacobian, updates.T),
        *(along(lambda weights: _layers(weights, inputs)[-1].ravel(), step) for step in (gradient, direction)),
        *(-along(loss, step) for step in (gradient, direction)),
        squares[-1] / sum(squares),
        jnp.asarray(jacobian.shape[1], inputs.dtype),
        jnp.stack(counts),
    )


def _layers(weights, inputs):
    layers = [inputs]
    for weight in weights[:-1]:
        layers.append(jnp.maximum(_product(layers[-1], weight.T), 0))
    return [*layers, _product(layers[-1], weights[-1].T)]


def _product(first, second):
    return jnp.matmul(first, second, precision="highest")
