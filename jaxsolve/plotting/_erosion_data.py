"""What the figures of feedback alignment show, as arrays."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from .._types import Key
from ..feedback import MLP, erosion_draws, erosion_form, weight_variances


class ErosionHistogram(NamedTuple):
    """Draws of the initial erosion, and the normal law that is predicted for them.

    Attributes
    ----------
    draws
        From the backward passes of independent feedback.
    mean, deviation
        Of the normal law, from one backward pass.
    distance, p_value
        Of the Kolmogorov-Smirnov test.
    """

    draws: Float[np.ndarray, " draws"]
    mean: float
    deviation: float
    distance: float
    p_value: float


class ErosionShares(NamedTuple):
    """Mean erosion and hidden share over widths.

    Attributes
    ----------
    widths
        Of the hidden layers.
    shares
        Hidden shares, one column per initialisation.
    means, standard_errors
        Mean erosion over feedback draws, and its standard error.
    """

    widths: Int[np.ndarray, " widths"]
    shares: Float[np.ndarray, "widths initialisations"]
    means: Float[np.ndarray, "widths initialisations"]
    standard_errors: Float[np.ndarray, "widths initialisations"]


def erosion_histogram(
    network: MLP, inputs: jax.Array, targets: jax.Array, *, count: int, direct: bool = False, key: Key
) -> ErosionHistogram:
    """Backward passes of a network against the normal law of one hidden layer, or of direct feedback.

    Raises
    ------
    ValueError
        For sequential feedback with more than one hidden layer, which has no normal law.
    """
    from scipy.stats import kstest, norm

    if not direct and network.depth != 1:
        raise ValueError(
            f"The law is normal for one hidden layer or direct feedback; got {network.depth} hidden layers. Pass "
            "direct=True, or use two_layer_erosion for two hidden layers."
        )
    residual = network(inputs) - targets
    drawn = erosion_draws(network, inputs, residual, count=count, direct=direct, method="backward", key=key)
    form = erosion_form(network, inputs, residual)
    mean = float(form.hidden_share)
    deviation = float(form.direct_variance(weight_variances(network.widths)[1:])) ** 0.5
    test = kstest(np.asarray(drawn), norm(mean, deviation).cdf)
    return ErosionHistogram(np.asarray(drawn), mean, deviation, float(test.statistic), float(test.pvalue))


def erosion_shares(
    widths: Sequence[int],
    inputs: jax.Array,
    targets: jax.Array,
    *,
    depth: int = 2,
    initialisations: int = 3,
    count: int = 512,
    key: Key,
) -> ErosionShares:
    """Hidden shares, and mean erosions over ``count`` draws of feedback, of networks with equal hidden widths."""
    shares, means, errors = (np.empty((len(widths), initialisations)) for _ in range(3))
    for row, width in enumerate(widths):
        layers = (inputs.shape[1], *[width] * depth, targets.shape[1])
        for column in range(initialisations):
            first, second = jax.random.split(jax.random.fold_in(jax.random.fold_in(key, row), column))
            network = MLP.initialise(layers, dtype=inputs.dtype, key=first)
            residual = network(inputs) - targets
            drawn = np.asarray(erosion_draws(network, inputs, residual, count=count, method="fast", key=second))
            shares[row, column] = float(erosion_form(network, inputs, residual).hidden_share)
            means[row, column] = drawn.mean()
            errors[row, column] = drawn.std(ddof=1) / np.sqrt(count)
    return ErosionShares(np.asarray(widths), shares, means, errors)
