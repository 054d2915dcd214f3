"""Three steps deep, the commuting optimum turns from a saddle into a minimum where tasks vary enough."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..curves import independent_saddle_ratio
from ..evidence import AbstractTheory, Curve, Kind, TransitionRule
from ..solver import population_loss

BISECTIONS = 24
BRACKET = 1e-3


class CommutingSaddle(AbstractTheory):
    """`ρ = B/√(A_ij A_ji) = 1` marks the spread of the tasks at which the best diagonal `P` changes its nature.

    Tasks are `H = diag(h_1, h_2)` with independent `h_k`, uniform on `1 ± δ`, and `P = diag(p, p)` is best among
    diagonal matrices. By [`jaxsolve.curves.independent_saddle_ratio`][] it is a saddle of the population loss at small
    spread `δ` and a minimum at large spread, for a decoder of three steps. The first error has second moments 1 and `s`
    in the two modes: the more unequal they are, the larger the spread at which the change comes.

    The prediction is a bracket of relative half-width 1e-3 around the root of `ρ − 1`. The measurement knows neither
    `ρ` nor the diagonal reduction: it takes all products of quadrature nodes as tasks, finds the optimum by Newton's
    method on the loss of diagonal matrices, and bisects the sign of the smallest eigenvalue of the Hessian with
    respect to all four entries of `P`, by JAX.

    The counterfeit puts the change at `ρ = 1.02`.

    Attributes
    ----------
    moment_ratios
        `s`.
    nodes, weights
        Quadrature of the uniform law on `[-1, 1]`.
    threshold
        1; the value of `ρ` at which the prediction puts the change.
    """

    moment_ratios: Float[Array, " points"]
    nodes: Float[Array, " nodes"]
    weights: Float[Array, " nodes"]
    threshold: Float[Array, ""]
    depth: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.TRANSITION
    rule: ClassVar[TransitionRule] = TransitionRule()
    source: ClassVar[str] = """@misc{solver-training,
  title = {Training dynamics of a transformer that learns a preconditioner},
  note = {source document 000, on a closed law for the joint state}
}"""
    statement: ClassVar[str] = (
        "For a decoder of three steps and two modes with independent uniform eigenvalues, the best diagonal "
        "preconditioner is a saddle of the population loss (half the mean square over unknowns) below a spread of the "
        "tasks and a minimum above it; the spread is where the ratio of coupling and curvature is one."
    )
    observables: ClassVar[tuple[str, ...]] = ("spread",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "tasks, preconditioner and second moment of the first error that commute",
        "eigenvalues that are independent between modes",
    )
    breaks_when: ClassVar[str] = "The law has a kurtosis below 3/2, as two values do: there is no saddle at any spread."
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        moment_ratios: tuple[float, ...] = (1.0, 1.5, 2.0),
        nodes: int = 10,
        depth: int = 3,
    ) -> "CommutingSaddle":
        """Three ratios of second moments, ten nodes for each mode."""
        positions, weights = np.polynomial.legendre.leggauss(nodes)
        return cls(
            moment_ratios=jnp.asarray(moment_ratios, dtype),
            nodes=jnp.asarray(positions, dtype),
            weights=jnp.asarray(weights / 2, dtype),
            threshold=jnp.asarray(1.0, dtype),
            depth=depth,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, **options) -> "CommutingSaddle":
        """Six ratios of second moments and 16 nodes."""
        return cls.quick(dtype=dtype, **({"moment_ratios": (1.0, 1.2, 1.5, 1.8, 2.0, 2.2), "nodes": 16} | options))

    def grid(self) -> Float[Array, " points"]:
        """The ratios of second moments."""
        return self.moment_ratios

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Brackets around the root."""

        def above(spread, ratio):
            law = 1 + spread * self.nodes
            found = independent_saddle_ratio(law, self.weights, depth=self.depth, moment_ratio=ratio)
            return found > self.threshold

        roots = _bisected(above, grid)
        return {"spread": Curve(grid, roots[:, None] * jnp.asarray([1 - BRACKET, 1 + BRACKET], self.dtype)[None])}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Where the smallest eigenvalue of the full Hessian changes its sign."""
        del key
        nodes = jnp.stack([mode.ravel() for mode in jnp.meshgrid(self.nodes, self.nodes)], axis=1)
        weights = (self.weights[:, None] * self.weights[None, :]).ravel()

        def unstable(spread, ratio):
            operators = jax.vmap(jnp.diag)(1 + spread * nodes)
            moment = jnp.diag(jnp.stack([jnp.ones_like(ratio), ratio]))

            def loss(matrix):
                each = jax.vmap(lambda operator: population_loss(matrix, operator[None], moment, depth=self.depth))
                return jnp.sum(weights * each(operators))

            def diagonal(gains):
                return loss(jnp.diag(gains))

            def newton(gains, _):
                step = jnp.linalg.solve(jax.hessian(diagonal)(gains), jax.grad(diagonal)(gains))
                return gains - step, None

            gains = jax.lax.scan(newton, jnp.full(2, 0.9, self.dtype), length=25)[0]
            hessian = jax.hessian(lambda entries: loss(entries.reshape(2, 2)))(jnp.diag(gains).ravel())
            return jnp.linalg.eigvalsh(hessian)[0] < 0

        return {"spread": Curve(grid, _bisected(unstable, grid))}

    def counterfeit(self) -> "CommutingSaddle":
        """The change comes at a ratio of 1.02."""
        return dataclasses.replace(self, threshold=1.02 * self.threshold)


def _bisected(holds_below, ratios):
    """Spreads between 0.2 and 0.95 up to which a condition holds, one for each ratio."""

    def halve(ends, _):
        low, high = ends
        middle = (low + high) / 2
        below = jax.lax.map(lambda pair: holds_below(*pair), (middle, ratios))
        return (jnp.where(below, middle, low), jnp.where(below, high, middle)), None

    ends = jnp.full_like(ratios, 0.2), jnp.full_like(ratios, 0.95)
    low, high = jax.lax.scan(halve, ends, length=BISECTIONS)[0]
    return (low + high) / 2
