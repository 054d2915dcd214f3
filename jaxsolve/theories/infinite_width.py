"""Tangent kernel and output share of a network tend to those of infinite width, with fluctuations of n^(−1/2)."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, LimitRule
from ..feedback import MLP, AbstractActivation, Backprop, Identity, Relu
from ..tangent import infinite_width_kernels, kernel

INSTANCE_SEED = 468


class InfiniteWidth(AbstractTheory):
    """`‖K_n / n − K_∞ / n‖ ∝ n^{−1/2}` over the width `n` of rectified networks with two hidden layers or more.

    `K_n` is the kernel `J Jᵀ` of the weights at the start of training, and `K_∞` has its layers from the recursion
    for infinite width: the sum of `n_{l−1} h_l e_l`, the same for every output. The output share
    `rᵀ K_out r / rᵀ K r` of a given residual `r` tends to the one of the recursion at the same rate. The value at a
    width holds many independent networks, so that the error is a root mean square over initialisations. The mean over
    them is off by `1/n` only, and not at all with one hidden layer.

    The experiment takes the kernel from forward and backward passes of networks, and the share from their gradients.
    The counterfeit has no derivative kernels, as for a deep linear network.

    Attributes
    ----------
    inputs
        Standard normal numbers.
    residual
        `r`, outputs minus targets, the same for every network.
    """

    inputs: Float[Array, "examples features"]
    residual: Float[Array, "examples outputs"]
    widths: tuple[int, ...] = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    networks: int = eqx.field(static=True)
    slopes: AbstractActivation = eqx.field(static=True, default=Relu())
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=-0.5, band=0.15)
    source: ClassVar[str] = """@inproceedings{jacot2018ntk,
  author = {Jacot, Arthur and Gabriel, Franck and Hongler, Cl{\\'e}ment},
  title = {Neural Tangent Kernel: Convergence and Generalization in Neural Networks},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {31},
  year = {2018},
}"""
    statement: ClassVar[str] = (
        "At initialisation the kernel J J^T of the weights, divided by the width of the hidden layers and not by the "
        "number of examples, and the output share of a fixed residual differ from the recursions of infinite width by "
        "fluctuations whose root mean square over networks falls as the width to the power -1/2."
    )
    observables: ClassVar[tuple[str, ...]] = ("kernel", "output_share")
    assumptions: ClassVar[tuple[str, ...]] = (
        "independent Gaussian weights of variance gain over fan-in, no biases",
        "all hidden layers have one width, well above the number of hidden layers",
    )
    breaks_when: ClassVar[str] = "Depth grows in proportion to the width: then fluctuations do not vanish."
    effect: ClassVar[float] = 0.3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        examples: int = 4,
        features: int = 6,
        outputs: int = 2,
        widths: tuple[int, ...] = (24, 48, 96, 192),
        depth: int = 2,
        networks: int = 256,
        instance_seed: int = INSTANCE_SEED,
    ) -> "InfiniteWidth":
        """Four inputs, 256 networks at each of four widths from 24 to 192."""
        generator = np.random.default_rng(instance_seed)
        arrays = generator.standard_normal((examples, features)), generator.standard_normal((examples, outputs))
        inputs, residual = (jnp.asarray(array, dtype) for array in arrays)
        return cls(inputs=inputs, residual=residual, widths=widths, depth=depth, networks=networks)

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        examples: int = 8,
        widths: tuple[int, ...] = (32, 64, 128, 256, 512),
        depth: int = 3,
        **options,
    ) -> "InfiniteWidth":
        """Eight inputs, three hidden layers, widths to 512; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, examples=examples, widths=widths, depth=depth, **options)

    def grid(self) -> Float[Array, " points"]:
        """Widths of the hidden layers."""
        return jnp.asarray(self.widths, self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The recursions, the same for all networks."""
        limit = infinite_width_kernels(self.inputs, depth=self.depth)
        errors = infinite_width_kernels(self.inputs, depth=self.depth, activation=self.slopes).errors
        limit = dataclasses.replace(limit, errors=errors)
        kernels, shares = [], []
        for width in self.widths:
            whole = limit.standard_tangent(self._all_widths(width))
            last = width * limit.hidden[-1]
            quadratic = (jnp.einsum("nc,nm,mc->", self.residual, part, self.residual) for part in (last, whole))
            kernels.append(jnp.kron(whole, jnp.eye(self.residual.shape[1], dtype=self.dtype)).ravel() / width)
            shares.append(jnp.divide(*quadratic)[None])
        return {
            name: Curve(grid, jnp.stack([jnp.broadcast_to(row, (self.networks, row.size)) for row in rows]))
            for name, rows in zip(self.observables, (kernels, shares), strict=True)
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Many networks at each width."""
        kernels, shares = [], []
        for index, width in enumerate(self.widths):

            def one(key, width=width):
                network = MLP.initialise(self._all_widths(width), dtype=self.dtype, key=key)
                gradients = Backprop().gradients(network, network.forward(self.inputs), self.residual).weights
                squares = jnp.stack([(gradient**2).sum() for gradient in gradients])
                tangent = kernel(network, self.inputs, Backprop())
                return tangent.ravel() / width, (squares[-1] / squares.sum())[None]

            keys = jax.random.split(jax.random.fold_in(key, index), self.networks)
            tangents, share = jax.lax.map(one, keys, batch_size=8)
            kernels.append(tangents)
            shares.append(share)
        pairs = zip(self.observables, (kernels, shares), strict=True)
        return {name: Curve(grid, jnp.stack(rows)) for name, rows in pairs}

    def counterfeit(self) -> "InfiniteWidth":
        """No derivative kernels: the slopes of a linear network."""
        return dataclasses.replace(self, slopes=Identity())

    def _all_widths(self, width):
        return (self.inputs.shape[1], *[width] * self.depth, self.residual.shape[1])
