"""Deleting a random subspace of the parameters costs a Beta-distributed share of the speed."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import ArrayLike, Key
from ..evidence import AbstractTheory, Kind, Law, LawRule, Samples
from ..feedback import DeletedShareLaw

INSTANCE_SEED = 43


class RandomSubspaceNull(AbstractTheory):
    """`‖P_E v‖² / ‖v‖² ~ Beta(k/2, (P − k)/2)` for a fixed `v` and a uniformly random `k`-dimensional subspace `E`.

    For few parameters a basis of `E` is made by orthogonalising Gaussian columns, and `v` is a field. Where the
    numbers of parameters are those of networks, the subspace is held fixed and `v` is uniform, which is the same by
    rotational invariance: `deleted` squares over the sum of all. The share that is kept is measured from what is left
    of `v`, and is `Beta((P − k)/2, k/2)`.

    The counterfeit deletes 10 % fewer dimensions.

    Attributes
    ----------
    gradients
        `v` of each member, filled up with zeros.
    deleted_ratio
        What the prediction multiplies `k` with: 1.
    parameters, deleted
        `P` and `k` of the members of the panel.
    explicit
        Whether subspaces are formed.
    batch
        Draws in one replicate, where they are not.
    """

    gradients: Float[Array, "panel largest"]
    deleted_ratio: Float[Array, ""]
    parameters: tuple[int, ...] = eqx.field(static=True)
    deleted: tuple[int, ...] = eqx.field(static=True)
    explicit: bool = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True)

    kind: ClassVar[Kind] = Kind.LAW
    rule: ClassVar[LawRule] = LawRule()
    source: ClassVar[str] = """@misc{feedback-alignment,
  title = {Feedback alignment against backpropagation},
  note = {source document 002, result D, proposition 2}
}"""
    statement: ClassVar[str] = (
        "The share of the squared norm of a fixed gradient in a uniformly random subspace of k of P parameters is "
        "Beta(k/2, (P - k)/2), with mean k/P and no chance of being zero; what is kept is Beta((P - k)/2, k/2)."
    )
    observables: ClassVar[tuple[str, ...]] = ("deleted_share", "kept_share")
    assumptions: ClassVar[tuple[str, ...]] = ("the subspace is uniform and independent of the gradient",)
    breaks_when: ClassVar[str] = "The directions that feedback spoils are not random: this is a null model."
    effect: ClassVar[float] = 0.03

    @classmethod
    def quick(cls, *, dtype: jax.typing.DTypeLike = float, replicates: int = 10_000) -> "RandomSubspaceNull":
        """Ten thousand explicit subspaces of 40 parameters, of 3, 13 and 30 dimensions."""
        return cls._build((40, 40, 40), (3, 13, 30), dtype, explicit=True, batch=1, replicates=replicates)

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float) -> "RandomSubspaceNull":
        """A hundred thousand draws for widths 20, 24, 32 and 40: `P = w² + 20 w`, `k = w² + 4 w − 2`."""
        widths = (20, 24, 32, 40)
        parameters, deleted = (tuple(w**2 + a * w - b for w in widths) for a, b in ((20, 0), (4, 2)))
        return cls._build(parameters, deleted, dtype, explicit=False, batch=100, replicates=1000)

    @classmethod
    def _build(cls, parameters, deleted, dtype, *, explicit, batch, replicates) -> "RandomSubspaceNull":
        drawn = np.random.default_rng(INSTANCE_SEED).standard_normal((len(parameters), max(parameters)))
        inside = np.arange(max(parameters))[None] < np.asarray(parameters)[:, None]
        return cls(
            gradients=jnp.asarray(np.where(inside, drawn, 0), dtype),
            deleted_ratio=jnp.ones((), dtype),
            parameters=parameters,
            deleted=deleted,
            explicit=explicit,
            batch=batch,
            replicates=replicates,
        )

    def grid(self) -> Float[Array, " panel"]:
        """Numbers of deleted dimensions."""
        return jnp.asarray(self.deleted, self.dtype)

    def predict(self, grid: Float[Array, " panel"]) -> dict[str, Law]:
        """The two Beta laws."""
        deleted, parameters = np.asarray(grid, float) * float(self.deleted_ratio), np.asarray(self.parameters, float)
        laws = (DeletedShareLaw(deleted, parameters), DeletedShareLaw(parameters - deleted, parameters))
        return {
            name: Law(eqx.Partial(_cdf, law), *(jnp.asarray(m, self.dtype) for m in (law.mean, law.variance)))
            for name, law in zip(self.observables, laws, strict=True)
        }

    def sample(self, grid: Float[Array, " panel"], *, key: Key) -> dict[str, Samples]:
        """Shares of deleted and kept parts, from one set of random numbers for the panel."""
        largest = max(self.parameters)
        if not self.explicit:
            squares = jax.random.normal(key, (self.batch * largest,), self.dtype).reshape(self.batch, largest) ** 2
            parts = [
                (jnp.sum(squares[:, :k], axis=1), jnp.sum(squares[:, k:size], axis=1))
                for k, size in zip(self.deleted, self.parameters, strict=True)
            ]
        else:
            columns = max(self.deleted)
            noise = jax.random.normal(key, (largest * columns,), self.dtype).reshape(largest, columns)
            basis, _ = jnp.linalg.qr(noise)
            parts = []
            for gradient, k in zip(self.gradients, self.deleted, strict=True):
                inside = jnp.matmul(gradient, basis[:, :k], precision="highest")
                rest = gradient - jnp.matmul(basis[:, :k], inside, precision="highest")
                parts.append((jnp.sum(inside**2)[None], jnp.sum(rest**2)[None]))
        lost, kept = (jnp.stack(part, axis=1) for part in zip(*parts, strict=True))
        return {"deleted_share": Samples(lost / (lost + kept)), "kept_share": Samples(kept / (lost + kept))}

    def counterfeit(self) -> "RandomSubspaceNull":
        """Ten percent fewer dimensions."""
        return eqx.tree_at(lambda theory: theory.deleted_ratio, self, 0.9 * self.deleted_ratio)


def _cdf(law: DeletedShareLaw, share: ArrayLike) -> Array:
    return jnp.asarray(law.cdf(np.clip(np.asarray(share, float), 0, 1)))
