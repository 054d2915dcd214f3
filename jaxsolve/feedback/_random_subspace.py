"""The null model of feedback's cost: a random subspace of the parameters is deleted."""

import math
from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import numpy as np

from ._alignment import HostValues, NumberLike


class DeletedShareLaw(eqx.Module):
    """Law of `e = ‖P_E v‖² / ‖v‖²` for a uniformly random `k`-dimensional subspace of `P` parameters.

    `e ~ Beta(k/2, (P − k)/2)` for any fixed `v`, in particular the gradient: the share of the first-order decrease of
    the loss that is lost where the update is projected off the subspace. The mean is `k/P`; for `k > 0` the chance of
    losing nothing is zero. It is a null model: the erosion of feedback alignment is another number.

    Computed in float64 on the host; arguments broadcast.

    Parameters
    ----------
    deleted
        `k`, between 0 and `P`, ends excluded.
    parameters
        `P`.

    Raises
    ------
    ValueError
        For numbers out of range or not finite.

    >>> law = DeletedShareLaw(670.0, 1056.0)
    >>> round(float(law.mean), 4), round(float(law.variance) ** 0.5, 4)
    (0.6345, 0.0209)
    """

    deleted: np.ndarray = eqx.field(converter=lambda deleted: np.asarray(deleted, dtype=np.float64))
    parameters: np.ndarray = eqx.field(converter=lambda parameters: np.asarray(parameters, dtype=np.float64))

    def __check_init__(self):
        finite = np.isfinite(self.deleted).all() and np.isfinite(self.parameters).all()
        if not (finite and (self.deleted > 0).all() and (self.deleted < self.parameters).all()):
            raise ValueError(
                "The deleted dimensions lie between 0 and the number of parameters, ends excluded; got "
                f"{self.deleted} of {self.parameters}."
            )

    @property
    def mean(self) -> HostValues:
        """`k / P`."""
        return self.deleted / self.parameters

    @property
    def variance(self) -> HostValues:
        """`2 (k/P) (1 − k/P) / (P + 2)`."""
        return 2 * self.mean * (1 - self.mean) / (self.parameters + 2)

    def cdf(self, share: NumberLike) -> HostValues:
        """`I_e(k/2, (P − k)/2)`.

        Raises
        ------
        ValueError
            For shares outside [0, 1].
        """
        from scipy.special import betainc

        share = np.asarray(share, dtype=np.float64)
        if not ((share >= 0) & (share <= 1)).all():
            raise ValueError(f"A share lies in [0, 1]; got values from {share.min()} to {share.max()}.")
        return betainc(self.deleted / 2, (self.parameters - self.deleted) / 2, share)


def alignment_constraints(widths: Sequence[int]) -> int:
    """How many directions alignment with fixed feedback would take up, `k = Σ_l (n_l n_{l+1} − 1)` over hidden layers.

    One for each entry of a backward matrix but its scale. Two hidden layers of width `w` with four outputs have
    `w² + 4 w − 2`.

    Parameters
    ----------
    widths
        `(n_0, …, n_L)`: inputs, hidden layers, outputs.

    Raises
    ------
    ValueError
        Without a hidden layer, and for a width below one.

    >>> alignment_constraints((16, 24, 24, 4))
    670
    """
    if len(widths) < 3 or min(widths) < 1:
        raise ValueError(f"Feedback needs a hidden layer, and widths of at least 1; got {tuple(widths)}.")
    return sum(math.prod(pair) - 1 for pair in pairwise(widths[1:]))
