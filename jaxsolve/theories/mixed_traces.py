"""The spectrum of a preconditioner does not fix its overlaps with the operator."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..certificates import order_parameters
from ..evidence import AbstractTheory, Curve, Kind, NullModelRule

INSTANCE_SEED = 54


class MixedTraces(AbstractTheory):
    """`tr(P H)`, `tr(P H P H)` and `tr(P H S Hᵀ Pᵀ)` are no functions of the spectra of `P`, `H` and `S`.

    The operator is `H = diag(h)` with `h` from 1/1000 to 1, equally spaced in the logarithm; preconditioners are
    `P = Q diag(0.9/h) Qᵀ` with orthogonal `Q`, which share all eigenvalues and singular values. A closed theory in the
    spectrum gives each of them one value of each trace. The reference model is the one that is right at `Q = I`, where
    `P H = 0.9 I`: the traces over `K` are `0.9`, `0.81` and `0.81` (with `S = I`). It is too low by a factor of five
    or more for Haar rotations and for the reversed order.

    The counterfeit pairs the spectra in opposite order, which is right for the reversed order.

    Attributes
    ----------
    eigenvalues
        `h`, in increasing order.
    preconditioners
        `P`, one per rotation; the last one is the reversed order.
    opposite
        Whether the reference model pairs the spectra in opposite order.
    """

    eigenvalues: Float[Array, " size"]
    preconditioners: Float[Array, "rotations size size"]
    opposite: bool = eqx.field(static=True, default=False)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.NULL_MODEL
    rule: ClassVar[NullModelRule] = NullModelRule(factor=5.0, direction="under")
    source: ClassVar[str] = """@misc{solver-training,
  title = {Training dynamics of a transformer that learns a preconditioner},
  note = {source document 000, on what a population closure must track}
}"""
    statement: ClassVar[str] = (
        "A model of the traces of PH, PHPH and PHSH'P' (over the size, S = I) that sees only the spectra, and is exact "
        "for aligned eigenvectors, is too low by a factor of 5 or more for preconditioners in other eigenvectors."
    )
    observables: ClassVar[tuple[str, ...]] = ("trace", "trace_of_square", "residual_energy")
    assumptions: ClassVar[tuple[str, ...]] = ("symmetric preconditioner and operator", "a wide spectrum", "S = I")
    breaks_when: ClassVar[str] = "The operator is a multiple of the identity: eigenvectors of P no longer matter."
    effect: ClassVar[float] = 1.0

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 16,
        rotations: int = 3,
        smallest: float = 1e-3,
        step: float = 0.9,
        instance_seed: int = INSTANCE_SEED,
    ) -> "MixedTraces":
        """16 unknowns, three Haar rotations and the reversed order."""
        normal = np.random.default_rng(instance_seed).standard_normal((rotations, size, size))
        rotation, triangle = np.linalg.qr(normal)
        rotation = rotation * np.sign(np.diagonal(triangle, axis1=1, axis2=2))[:, None, :]
        orthogonal = np.concatenate([rotation, np.eye(size)[None, ::-1]])
        eigenvalues = np.geomspace(smallest, 1, size)
        preconditioners = np.einsum("qij,j,qkj->qik", orthogonal, step / eigenvalues, orthogonal)
        return cls(eigenvalues=jnp.asarray(eigenvalues, dtype), preconditioners=jnp.asarray(preconditioners, dtype))

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, rotations: int = 32, **options) -> "MixedTraces":
        """32 Haar rotations; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, rotations=rotations, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of the rotations; the last one is the reversed order."""
        return jnp.arange(1, len(self.preconditioners) + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Means of products of paired eigenvalues."""
        spectra = jnp.linalg.eigvalsh(self.preconditioners)
        paired = spectra if self.opposite else spectra[:, ::-1]
        products = paired * self.eigenvalues[None, :]
        square = jnp.mean(products**2, axis=1)
        return {
            "trace": Curve(grid, jnp.mean(products, axis=1)),
            "trace_of_square": Curve(grid, square),
            "residual_energy": Curve(grid, square),
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Traces of products of the matrices."""
        del key
        identity = jnp.eye(len(self.eigenvalues), dtype=self.dtype)
        operator = jnp.diag(self.eigenvalues)[None]
        found = jax.vmap(lambda matrix: order_parameters(matrix, operator, identity))(self.preconditioners)
        return {
            "trace": Curve(grid, found.first_moment),
            "trace_of_square": Curve(grid, found.second_moment),
            "residual_energy": Curve(grid, found.residual_energy),
        }

    def counterfeit(self) -> "MixedTraces":
        """Spectra in opposite order."""
        return dataclasses.replace(self, opposite=True)
