"""The learned solver: a preconditioned Richardson iteration of fixed depth, and its exact gradient."""

from ._adjoint import adjoint_gradient
from ._methods import METHODS, choose_method
from ._population import population_gradient, population_loss
from ._pretraining import pretrain, wishart_operators
from ._rollout import rollout, training_loss, trajectory
from ._tangent import rollout_kernel
from ._weak_form import (
    CoefficientEstimate,
    Prompts,
    WeakFormEncoder,
    draw_prompts,
    project_to_box,
    train_encoder,
)

__all__ = [
    "METHODS",
    "CoefficientEstimate",
    "Prompts",
    "WeakFormEncoder",
    "adjoint_gradient",
    "choose_method",
    "draw_prompts",
    "population_gradient",
    "population_loss",
    "pretrain",
    "project_to_box",
    "rollout",
    "rollout_kernel",
    "train_encoder",
    "training_loss",
    "trajectory",
    "wishart_operators",
]
