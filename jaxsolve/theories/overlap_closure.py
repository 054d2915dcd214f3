"""The spectrum of a preconditioner does not fix its risk."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..certificates import depth_risk
from ..evidence import AbstractTheory, Curve, Kind, NullModelRule
from ..solver import trajectory

INSTANCE_SEED = 38


class OverlapClosure(AbstractTheory):
    """Preconditioners with the same eigenvalues and singular values differ in risk by more than two orders.

    The operator is `H = diag(h)`, and the preconditioners are `P = Q diag(0.9/h) Qᵀ` with orthogonal `Q`: symmetric, so
    that their singular values are their eigenvalues. The last `Q` reverses the order of the unknowns, the others are
    drawn from the Haar measure. A closure on the spectrum has to give one risk to all of them. The reference model is
    the one that is right at `Q = I`: it pairs the largest eigenvalue of `P` with the smallest of `H` and so on,

        R_L = (1/K) Σ_k (1 − p_k h_k)^{2 L},

    with `p` the eigenvalues of each `P`, in decreasing order. The measurement is the mean square error after `L` steps
    of the decoder, for first errors with second moment `S = I`; the mean is exact, over the `K` unit vectors. Risks are
    means over unknowns without the factor 1/2. What tells the preconditioners apart are mixed traces such as
    `Tr(P H)`: see [`jaxsolve.certificates.order_parameters`][].

    The counterfeit pairs the spectra in the opposite order, and is nearly right.

    Attributes
    ----------
    eigenvalues
        `h`, in increasing order.
    preconditioners
        `P`, one per alignment.
    depths
        `L`.
    """

    eigenvalues: Float[Array, " size"]
    preconditioners: Float[Array, "alignments size size"]
    depths: tuple[int, ...] = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.NULL_MODEL
    rule: ClassVar[NullModelRule] = NullModelRule(factor=100.0, direction="under")
    source: ClassVar[str] = """@misc{solver-training,
  title = {Training dynamics of a transformer that learns a preconditioner},
  note = {source document 000, on what a population closure must track}
}"""
    statement: ClassVar[str] = (
        "A model of the risk (mean square error over unknowns, no factor 1/2) that sees only the spectrum of the "
        "preconditioner, and is exact for one aligned with the operator, is too low by a factor of 100 or more for "
        "preconditioners of the same spectrum in other eigenvectors."
    )
    observables: ClassVar[tuple[str, ...]] = ("risk",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "symmetric preconditioner and operator",
        "isotropic first error",
        "an operator with a spread of eigenvalues",
    )
    breaks_when: ClassVar[str] = "The operator is a multiple of the identity: eigenvectors of P no longer matter."
    effect: ClassVar[float] = 1.0

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 16,
        rotations: int = 3,
        depths: tuple[int, ...] = (1, 4),
        smallest: float = 0.1,
        step: float = 0.9,
        instance_seed: int = INSTANCE_SEED,
    ) -> "OverlapClosure":
        """16 unknowns with eigenvalues from 0.1 to 1; three Haar rotations and the reversed order."""
        normal = np.random.default_rng(instance_seed).standard_normal((rotations, size, size))
        rotation, triangle = np.linalg.qr(normal)
        rotation = rotation * np.sign(np.diagonal(triangle, axis1=1, axis2=2))[:, None, :]
        orthogonal = np.concatenate([rotation, np.eye(size)[None, ::-1]])
        eigenvalues = np.linspace(smallest, 1, size)
        preconditioners = np.einsum("qij,j,qkj->qik", orthogonal, step / eigenvalues, orthogonal)
        return cls(
            eigenvalues=jnp.asarray(eigenvalues, dtype),
            preconditioners=jnp.asarray(preconditioners, dtype),
            depths=depths,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, rotations: int = 32, **options) -> "OverlapClosure":
        """32 Haar rotations and the reversed order; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, rotations=rotations, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of the alignments; the last one is the reversed order."""
        return jnp.arange(1, len(self.preconditioners) + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The risks that the spectra alone suggest, at each depth."""
        spectra = jnp.linalg.eigvalsh(self.preconditioners)[:, ::-1]
        factors = 1 - spectra * self.eigenvalues[None, :]
        risks = [jnp.mean(factors ** (2 * depth), axis=1) for depth in self.depths]
        return {"risk": Curve(grid, jnp.stack(risks, axis=1))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """The risk of the decoder at each depth."""
        del key
        size = self.eigenvalues.shape[0]
        solutions = jnp.eye(size, dtype=self.dtype)
        operators = jnp.broadcast_to(jnp.diag(self.eigenvalues)[None], (size, size, size))
        right_hand_sides = self.eigenvalues[None, :] * solutions

        def risk(preconditioner):
            arguments = (preconditioner, operators, right_hand_sides, jnp.zeros_like(solutions))
            return size * depth_risk(trajectory(*arguments, depth=max(self.depths)), solutions)

        risks = jax.lax.map(risk, self.preconditioners)
        return {"risk": Curve(grid, risks[:, jnp.asarray(self.depths)])}

    def counterfeit(self) -> "OverlapClosure":
        """The reference model pairs large with large eigenvalues."""
        return eqx.tree_at(lambda theory: theory.eigenvalues, self, self.eigenvalues[::-1])
