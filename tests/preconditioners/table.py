"""All preconditioners in one table, with random parameters, and operators for them."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxsolve.preconditioners import (
    AbstractPreconditioner,
    Flexformer,
    FreeLinear,
    Jacobi,
    LinearAttention,
    OperatorTokens,
    PositiveFeatureAttention,
    ScaledMeanInverse,
    SoftmaxAttention,
    position_tokens,
)

TASKS, SIZE, HEADS, HEAD_SIZE, FEATURES = 3, 7, 2, 3, 5


@dataclass(frozen=True)
class Case:
    """A preconditioner to test: how to build one, whether it is one per task, and whether it is applied matrix-free."""

    name: str
    build: Callable[[int, np.random.Generator], AbstractPreconditioner]
    per_task: bool = False
    matrix_free: bool = False

    def __call__(self, size: int = SIZE, *, dtype=float, seed: int = 0) -> AbstractPreconditioner:
        """With random parameters, the same in every dtype."""
        preconditioner = self.build(size, np.random.default_rng(seed))
        return jax.tree.map(lambda leaf: leaf.astype(dtype), preconditioner)


def operators(tasks: int = TASKS, size: int = SIZE, *, dtype=float, seed: int = 0):
    """Symmetric positive definite, with unequal diagonals and condition numbers of about ten."""
    random = np.random.default_rng(seed)
    factors = random.standard_normal((tasks, size, 2 * size)) / np.sqrt(2 * size)
    scales = np.exp(0.3 * random.standard_normal((tasks, size)))
    matrices = factors @ factors.swapaxes(1, 2) + 0.2 * np.eye(size)
    return jnp.asarray(scales[:, :, None] * matrices * scales[:, None, :], dtype)


def residuals(tasks: int = TASKS, size: int = SIZE, *, dtype=float, seed: int = 0):
    return jnp.asarray(np.random.default_rng(seed + 1000).standard_normal((tasks, size)), dtype)


@jax.jit
def evaluated(preconditioner, systems, vectors):
    """Matrix and product. Called with the default sizes, it compiles once per case."""
    return preconditioner.matrix(systems), preconditioner.apply(systems, vectors)


def _attention(model, per_task, *shapes):
    def build(size, random):
        tokens = position_tokens(size)
        if per_task:
            tokens = OperatorTokens(tokens, random.standard_normal((size, 4)))
        projections = random.standard_normal((2, HEADS, tokens.shape[1], HEAD_SIZE)) / tokens.shape[1] ** 0.5
        gains, skip = 0.5 + 0.2 * random.standard_normal(HEADS), np.asarray(1 + 0.2 * random.standard_normal())
        return model(tokens, *projections, gains, skip, *(random.standard_normal(shape) for shape in shapes))

    return build


def _scaled_mean_inverse(size, random):
    inverse = np.linalg.inv(np.mean(operators(4, size, seed=7), axis=0))
    return ScaledMeanInverse(inverse, np.asarray(1 + 0.2 * random.standard_normal()))


_FREQUENCIES = (HEADS, FEATURES, HEAD_SIZE)
_MODELS = {
    "linear": (LinearAttention, True, ()),
    "softmax": (SoftmaxAttention, False, ()),
    "flexformer-stationary": (Flexformer, True, ((1, *_FREQUENCIES), (HEADS, FEATURES))),
    "flexformer": (Flexformer, True, ((2, *_FREQUENCIES), (HEADS, FEATURES))),
    "positive": (PositiveFeatureAttention, True, (_FREQUENCIES,)),
}

ATTENTIONS = [
    Case(name + ("-per-task" if per_task else ""), _attention(model, per_task, *shapes), per_task, matrix_free)
    for per_task in (False, True)
    for name, (model, matrix_free, shapes) in _MODELS.items()
]
CLASSICAL = [
    Case("jacobi", lambda _, random: Jacobi(np.exp(random.standard_normal())), per_task=True, matrix_free=True),
    Case("scaled-mean-inverse", _scaled_mean_inverse, per_task=True),
]
FREE = Case("free", lambda size, random: FreeLinear(random.standard_normal((size, size))))
CASES = [FREE, *ATTENTIONS, *CLASSICAL]
