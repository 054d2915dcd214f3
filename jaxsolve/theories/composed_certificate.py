"""The error behind an encoder lies under the decoder's bound on the estimated operator plus the encoder's."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..certificates import composed_certificate, prompted_diffusion
from ..evidence import AbstractTheory, BoundRule, Curve, Kind
from ..solver import trajectory

INSTANCE_SEED = 34


class ComposedCertificate(AbstractTheory):
    """`‖x_l − x*‖ ≤ ‖I − P Â‖^l ‖x_0 − x†‖ + ‖Â⁻¹ (A − Â)‖ ‖x*‖`, stage by stage and together, for every task.

    The systems are diffusion problems on a line, the estimates `Â` those of a least-squares encoder from short noisy
    prompts, and `x† = Â⁻¹ A x*`. The decoder runs on `Â` from zero with a disturbed inverse of the mean operator. Four
    inequalities are measured, norms over the unknowns of a task:

    - ``decoder``: `‖x_l − x†‖ ≤ ‖(I − P Â)^l‖ ‖x†‖`, the decoder alone, on the operator that it runs on;
    - ``total``: `‖x_l − x*‖` under the whole bound, with the same powers;
    - ``encoder_share``: `‖x_l − x*‖ − ‖x_l − x†‖ ≤ ‖Â⁻¹ (A − Â) x*‖`: where the decoder's part is small and the
      total is not, the encoder is at fault;
    - ``decoder_share``: `‖x_l − x*‖ − ‖Â⁻¹ (A − Â) x*‖ ≤ ‖(I − P Â)^l‖ ‖x†‖`: where the encoder's part is small and
      the total is not, the iteration is.

    The measurement runs the iteration; `x†` in it comes from an eigendecomposition of `Â`, in the prediction from
    elimination.

    The counterfeit certifies the decoder with `A` in the place of `Â`.

    Attributes
    ----------
    certified
        The operators that the bounds are computed with: `Â`.
    """

    preconditioner: Float[Array, "size size"]
    certified: Float[Array, "tasks size size"]
    estimates: Float[Array, "tasks size size"]
    operators: Float[Array, "tasks size size"]
    solutions: Float[Array, "tasks size"]
    depth: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.BOUND
    rule: ClassVar[BoundRule] = BoundRule()
    source: ClassVar[str] = """@book{saad2003iterative,
  author = {Saad, Yousef},
  title = {Iterative Methods for Sparse Linear Systems},
  edition = {2},
  publisher = {SIAM},
  year = {2003},
}"""
    statement: ClassVar[str] = (
        "The Euclidean error of a decoder behind an encoder is at most the norm of (I - P A^)^l times that of the "
        "estimated solution, plus the norm of A^^-1 (A - A^) times that of the solution; each part bounds its own "
        "stage, and neither stage can have more of the error than its part, for every held-out task and depth."
    )
    observables: ClassVar[tuple[str, ...]] = ("decoder", "total", "encoder_share", "decoder_share")
    assumptions: ClassVar[tuple[str, ...]] = (
        "the preconditioner does not change from step to step",
        "the estimated operators are symmetric positive definite",
    )
    breaks_when: ClassVar[str] = "The decoder is certified with the true operator, on which it does not run."
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 64,
        size: int = 16,
        prompt_size: int = 4,
        noise: float = 0.4,
        depth: int = 6,
        instance_seed: int = INSTANCE_SEED,
    ) -> "ComposedCertificate":
        """64 tasks of 16 unknowns, prompts of four noisy pairs, six steps."""
        random = np.random.default_rng(instance_seed)
        drawn = prompted_diffusion(tasks, size=size, prompt_size=prompt_size, noise=noise, generator=random)
        disturbed = np.eye(size) + 0.3 * random.standard_normal((size, size)) / np.sqrt(size)
        preconditioner = np.linalg.inv(drawn.reference) @ disturbed
        return cls(
            preconditioner=jnp.asarray(preconditioner, dtype),
            certified=jnp.asarray(drawn.estimates, dtype),
            estimates=jnp.asarray(drawn.estimates, dtype),
            operators=jnp.asarray(drawn.operators, dtype),
            solutions=jnp.asarray(drawn.solutions, dtype),
            depth=depth,
        )

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, tasks: int = 512, size: int = 32, **options
    ) -> "ComposedCertificate":
        """512 tasks of 32 unknowns; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, size=size, **options)

    def grid(self) -> Float[Array, " points"]:
        """Depths 1 to ``depth``."""
        return jnp.arange(1, self.depth + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The composed certificate, and the effect of the wrong operator by a direct solve."""
        initial = jnp.zeros_like(self.solutions)
        certificate = composed_certificate(
            self.preconditioner, self.certified, self.operators, self.solutions, initial, depth=self.depth
        )
        sides = jnp.einsum("tij,tj->ti", self.operators - self.certified, self.solutions, precision="highest")
        wrong = jnp.linalg.norm(jnp.linalg.solve(self.certified, sides[:, :, None])[:, :, 0], axis=1)
        at = grid.astype(int)
        decoder = certificate.decoder.power_bounds[at]
        return {
            "decoder": Curve(grid, decoder),
            "total": Curve(grid, certificate.power_bounds[at]),
            "encoder_share": Curve(grid, jnp.broadcast_to(wrong[None], decoder.shape)),
            "decoder_share": Curve(grid, decoder),
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Norms of errors of the iterates."""
        del key
        sides = jnp.einsum("tij,tj->ti", self.operators, self.solutions, precision="highest")
        initial = jnp.zeros_like(self.solutions)
        iterates = trajectory(self.preconditioner, self.estimates, sides, initial, depth=self.depth)
        values, vectors = jnp.linalg.eigh(self.estimates)
        modes = jnp.einsum("tij,ti->tj", vectors, sides, precision="highest") / values
        estimated = jnp.einsum("tij,tj->ti", vectors, modes, precision="highest")
        total, decoder = (
            jnp.linalg.norm(iterates - reference[None], axis=2)[grid.astype(int)]
            for reference in (self.solutions, estimated)
        )
        wrong = jnp.linalg.norm(estimated - self.solutions, axis=1)[None]
        found = (decoder, total, total - decoder, total - wrong)
        return {name: Curve(grid, value) for name, value in zip(self.observables, found, strict=True)}

    def counterfeit(self) -> "ComposedCertificate":
        """The bounds of the true operator."""
        return dataclasses.replace(self, certified=self.operators)
