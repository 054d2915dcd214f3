"""How the squared gradient of a network at initialisation is divided among its layers."""

from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..feedback import MLP


class GradientShares(AbstractTheory):
    """`E‖g_l‖² = ‖x‖² ‖r‖² n_{l−1} / (2 n_0)` in a hidden layer, twice that in the last: wide inputs count.

    The weights have the variances `2/n_{l−1}`, in the last layer `1/n_{L−1}`, and the residual `r` of the one example
    `x` is not made by the network. Then a rectified layer keeps the mean of `‖h_l‖²/n_l`, the way back keeps the mean
    of `‖δ_l‖²` but for the half that the last hidden layer's gates take, and the two are uncorrelated: a row of weights
    and its negative are equally likely, and open the gate for one of the two. So the hidden layers' share of
    the mean squared gradient is

        Σ_{l<L−1} n_l / (Σ_{l<L−1} n_l + 2 n_{L−1}),

    which tends to one in the width `n_0` of the inputs. The measurement differentiates `⟨r, f(x)⟩` in drawn networks;
    `x` and `r` have norm one.

    The counterfeit leaves all gates open.

    Attributes
    ----------
    scale
        One; carries the dtype.
    input_widths
        `n_0` by grid point.
    hidden
        Widths of the hidden layers.
    """

    scale: Float[Array, ""]
    input_widths: tuple[int, ...] = eqx.field(static=True)
    hidden: tuple[int, ...] = eqx.field(static=True)
    outputs: int = eqx.field(static=True)
    gated: bool = eqx.field(static=True)
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@inproceedings{he2015delving,
  author = {He, Kaiming and Zhang, Xiangyu and Ren, Shaoqing and Sun, Jian},
  title = {Delving deep into rectifiers: surpassing human-level performance on {ImageNet} classification},
  booktitle = {ICCV},
  year = {2015},
}"""
    statement: ClassVar[str] = (
        "For one example, a residual independent of the network, rectified layers of weight variance 2/fan-in and a "
        "last layer of 1/fan-in, the mean squared gradient of a hidden layer is ||x||^2 ||r||^2 n_{l-1}/(2 n_0) and of "
        "the last ||x||^2 ||r||^2 n_{L-1}/n_0: the share of the hidden layers grows with the width of the inputs."
    )
    observables: ClassVar[tuple[str, ...]] = ("hidden_square", "output_square")
    assumptions: ClassVar[tuple[str, ...]] = (
        "no biases; independent weights, each as likely as its negative",
        "one example, whose residual does not depend on the weights",
    )
    breaks_when: ClassVar[str] = (
        "Gradients of several examples are added: they are correlated, and the share becomes smaller. Or the residual "
        "contains the network's own output."
    )
    effect: ClassVar[float] = 0.05

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        input_widths: tuple[int, ...] = (4, 16, 128),
        hidden: tuple[int, ...] = (32, 24),
        replicates: int = 4096,
    ) -> "GradientShares":
        """Inputs of 4, 16 and 128 numbers, hidden layers of 32 and 24 units, ten outputs."""
        return cls(
            scale=jnp.ones((), dtype),
            input_widths=input_widths,
            hidden=hidden,
            outputs=10,
            gated=True,
            replicates=replicates,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        input_widths: tuple[int, ...] = (4, 16, 64, 256, 784),
        hidden: tuple[int, ...] = (64, 64),
        replicates: int = 8192,
    ) -> "GradientShares":
        """Inputs of 4 to 784 numbers and hidden layers of 64 units."""
        return cls.quick(dtype=dtype, input_widths=input_widths, hidden=hidden, replicates=replicates)

    def grid(self) -> Float[Array, " points"]:
        """Widths of the inputs."""
        return jnp.asarray(self.input_widths, self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Sums of widths."""
        half = 0.5 if self.gated else 1.0
        below = grid + float(sum(self.hidden[:-1]))
        return {
            "hidden_square": Curve(grid, self.scale * half * below / grid),
            "output_square": Curve(grid, self.scale * self.hidden[-1] / grid),
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Squared gradients of one network per width."""
        columns = []
        for index, size in enumerate(self.input_widths):
            widths = (size, *self.hidden, self.outputs)
            first, second, third = jax.random.split(jax.random.fold_in(key, index), 3)
            network = MLP.initialise(widths, key=first, dtype=self.dtype)
            example, residual = _unit(second, size, self.dtype), _unit(third, self.outputs, self.dtype)

            def paired(network, example=example, residual=residual):
                return jnp.vdot(residual, network(example[None])[0])

            squares = [jnp.sum(part**2) for part in jax.grad(paired)(network).weights]
            columns.append((sum(squares[:-1]), squares[-1]))
        return {
            name: Curve(grid, jnp.stack(values))
            for name, values in zip(self.observables, zip(*columns, strict=True), strict=True)
        }

    def counterfeit(self) -> "GradientShares":
        """Gates that let everything pass."""
        return replace(self, gated=False)


def _unit(key: Key, size: int, dtype) -> Array:
    direction = jax.random.normal(key, (size,), dtype)
    return direction / jnp.linalg.norm(direction)
