"""The lazy limit is reached at a drop of the loss that does not depend on the scale."""

import jax
import numpy as np

from jaxsolve.curves import loss_drop
from jaxsolve.evidence import Result, evaluate
from jaxsolve.theories.lazy_scaling import LazyScaling


def test_the_error_falls_while_the_drop_stays():
    theory = LazyScaling.quick(scales=(2.0, 4.0, 8.0))
    outcome = evaluate(theory, key=jax.random.key(0))
    predicted, measured = (side.value for side in (outcome.pairs["loss"].predicted, outcome.pairs["loss"].measured))
    assert outcome.verdicts["loss"].result is Result.AGREES
    assert (np.asarray(loss_drop(measured)) > 0.3).all()
    assert np.ptp(loss_drop(predicted)) == 0
    error = np.linalg.norm(predicted - measured, axis=1) / np.linalg.norm(measured, axis=1)
    assert (error[1:] < 0.55 * error[:-1]).all()
