"""Figures of random feedback: its alignment, its coverage and what the first step loses."""

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from ..feedback import (
    MLP,
    AnisotropicFeedback,
    FixedAxisFeedback,
    IsotropicFeedback,
    LowRankFeedback,
    OrthogonalFeedback,
    RandomAxisFeedback,
    SignFeedback,
    SparseFeedback,
    SubspaceFeedback,
)
from ._erosion import draw_erosion_histogram, draw_erosion_shares
from ._erosion_data import erosion_histogram, erosion_shares
from ._feedback import draw_alignment_tails, draw_worst_coverage
from ._feedback_data import alignment_tails, worst_coverages
from ._figure import _STYLE
from ._gallery_setup import SEED, new_figure


@rc_context(_STYLE)
def alignment_tail() -> Figure:
    """The law of the static alignment against draws, in four dimensions."""
    data = alignment_tails(np.array([64.0, 256.0, 1024.0, 4096.0]), draws=50_000, key=jax.random.key(SEED))
    figure, axes = new_figure(1, 1, title="Alignment of random feedback by chance", size=(6.5, 4.6))
    draw_alignment_tails(axes[0, 0], data)
    return figure


@rc_context(_STYLE)
def feedback_coverage() -> Figure:
    """What laws of feedback make of their worst target, and what a sample makes of the law."""
    shape = (4, 8)
    ensembles = {
        "isotropic": IsotropicFeedback(shape),
        "signs": SignFeedback(shape),
        "orthogonal": OrthogonalFeedback(shape),
        "rank one": LowRankFeedback(shape, rank=1),
        "sparse, 4 of 32": SparseFeedback(shape, entries=4),
        "random axis": RandomAxisFeedback(shape),
        "anisotropic": AnisotropicFeedback(shape, np.geomspace(10, 1, 32)),
        "subspace of 16": SubspaceFeedback(shape, rank=16),
        "fixed axis": FixedAxisFeedback(shape),
    }
    data = worst_coverages(ensembles, (300, 2000, 20_000), key=jax.random.key(SEED))
    figure, axes = new_figure(1, 1, title="Coverage of the worst target, 32 entries", size=(7.5, 5.0))
    draw_worst_coverage(axes[0, 0], data)
    return figure


@rc_context(_STYLE)
def initial_erosion() -> Figure:
    """What random feedback loses in the first step: a normal law, and the share of the hidden layers as its mean."""
    generator = np.random.default_rng(SEED)
    inputs, targets = (jnp.asarray(generator.standard_normal((128, size)), float) for size in (16, 4))
    network = MLP.initialise((16, 32, 4), key=jax.random.key(SEED))
    law = erosion_histogram(network, inputs, targets, count=4096, key=jax.random.key(0))
    shares = erosion_shares((16, 32, 64), inputs, targets, key=jax.random.key(1))
    figure, axes = new_figure(1, 2, title="Initial erosion of feedback alignment, with one and with two hidden layers")
    draw_erosion_histogram(axes[0, 0], law)
    draw_erosion_shares(axes[0, 1], shares)
    return figure
