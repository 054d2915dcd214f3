"""The learned solver: a preconditioned Richardson iteration of fixed depth, and its exact gradient."""

from ._adjoint import adjoint_gradient
from ._methods import METHODS, choose_method
from ._population import population_gradient, population_loss
from ._pretraining import pretrain, wishart_operators
from ._rollout import apply_operators, rollout, training_loss, trajectory
from ._tangent import rollout_kernel

__all__ = [
    "METHODS",
    "adjoint_gradient",
    "apply_operators",
    "choose_method",
    "population_gradient",
    "population_loss",
    "pretrain",
    "rollout",
    "rollout_kernel",
    "training_loss",
    "trajectory",
    "wishart_operators",
]
