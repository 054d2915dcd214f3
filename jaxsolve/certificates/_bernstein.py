"""A bound on the risk from a sample of held-out losses."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from .._arguments import check_dtypes
from .._results import RESULTS, first_failure, raise_failures
from .._types import ArrayLike, Scalar


class EmpiricalBernstein(eqx.Module):
    """An upper bound on the clipped risk, from [`empirical_bernstein`][]. All but the share and the variance are in
    the units of the losses.

    Attributes
    ----------
    bound
        ``mean + deviation + deterministic``. It may exceed the clip, and says nothing then.
    mean, variance
        Of the clipped losses; the variance is the unbiased one, with `n − 1`.
    deviation
        `(2 variance ln(2/δ) / n)^{1/2}`.
    deterministic
        `7 B ln(2/δ) / (3 (n − 1))`: no sample brings the bound below it.
    clipped_share
        Share of losses above the clip. The bound says nothing of what was clipped off.
    result
        One result per loss.
    """

    bound: Scalar
    mean: Scalar
    variance: Scalar
    deviation: Scalar
    deterministic: Scalar
    clipped_share: Scalar
    result: RESULTS


def empirical_bernstein(
    losses: Float[ArrayLike, " samples"], *, clip: float, confidence_delta: float, throw: bool = True
) -> EmpiricalBernstein:
    """With probability at least `1 − δ` over `n` independent losses of one law, none of them negative,

        E min(ℓ, B) ≤ B (x̄ + (2 V ln(2/δ) / n)^{1/2} + 7 ln(2/δ) / (3 (n − 1))),

    with `x_i = min(ℓ_i, B) / B`, their mean `x̄` and their unbiased variance `V`. This bounds the clipped risk, not
    the risk: `B` and `δ` are fixed before the losses are seen.

    Parameters
    ----------
    losses
        `ℓ_i`, on tasks that were not trained on.
    clip
        `B`.
    confidence_delta
        `δ`, the probability with which the bound may fail.
    throw
        Whether to raise for losses that are NaN, infinite or negative; otherwise all values are NaN and ``result``
        tells.

    Raises
    ------
    ValueError
        For fewer than two losses, losses that are not finite or negative, a clip that is not positive and finite, and
        a `δ` outside (0, 1).

    Source: Maurer and Pontil, "Empirical Bernstein bounds and sample variance penalization", COLT 2009, theorem 4.

    >>> import jax.numpy as jnp
    >>> certificate = empirical_bernstein(jnp.zeros(512), clip=10.0, confidence_delta=0.05)
    >>> round(float(certificate.bound), 5)
    0.16844
    """
    losses = jnp.asarray(losses)
    if losses.ndim != 1 or losses.size < 2:
        raise ValueError(
            f"An empirical Bernstein bound takes at least two losses along one axis; got shape {losses.shape}. One "
            "loss has no variance."
        )
    check_dtypes(losses=losses)
    clip, confidence_delta = float(clip), float(confidence_delta)
    if not 0 < clip < math.inf:
        raise ValueError(f"The clip is positive and finite; got {clip}.")
    if not 0 < confidence_delta < 1:
        raise ValueError(f"confidence_delta is a probability strictly between 0 and 1; got {confidence_delta}.")
    certificate = _bernstein(losses, clip, math.log(2 / confidence_delta))
    return raise_failures(certificate, certificate.result, of="losses") if throw else certificate


@jax.jit
def _bernstein(losses, clip, logarithm) -> EmpiricalBernstein:
    finite, count = jnp.isfinite(losses), losses.size
    valid = (finite & (losses >= 0)).all()
    clipped = jnp.minimum(jnp.where(valid, losses, jnp.nan), clip)
    mean, variance = jnp.mean(clipped), jnp.var(clipped, ddof=1)
    deviation = jnp.sqrt(2 * variance * logarithm / count)
    deterministic = jnp.asarray(7 * clip * logarithm / (3 * (count - 1)), losses.dtype)
    return EmpiricalBernstein(
        bound=mean + deviation + deterministic,
        mean=mean,
        variance=variance,
        deviation=deviation,
        deterministic=deterministic,
        clipped_share=jnp.where(valid, jnp.mean(losses > clip, dtype=losses.dtype), jnp.nan),
        result=first_failure((~finite, RESULTS.not_finite), (losses < 0, RESULTS.negative)),
    )
