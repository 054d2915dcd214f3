"""Parameters that are not finite, found before a kernel is made of them."""

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

from ..feedback import AbstractBackwardRule, AbstractNetwork


def check_finite(network: AbstractNetwork, rule: AbstractBackwardRule) -> None:
    """Refuse parameters or feedback matrices that hold NaN or infinities; under a trace nothing can be checked."""
    leaves = [
        (jax.tree_util.keystr(path), leaf)
        for tree in (network, rule)
        for path, leaf in jax.tree_util.tree_leaves_with_path(eqx.filter(tree, eqx.is_inexact_array))
    ]
    if any(isinstance(leaf, Tracer) for _, leaf in leaves):
        return
    broken = [name for name, leaf in leaves if not np.isfinite(np.asarray(leaf)).all()]
    if broken:
        raise ValueError(
            f"{', '.join(broken)} of {type(network).__name__} and {type(rule).__name__} hold values that are not "
            "finite; a kernel of them would be NaN. Look at the training run that they come from."
        )
