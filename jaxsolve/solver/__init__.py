"""The learned solver: encoders, a preconditioned Richardson iteration of fixed depth, and its exact gradient."""

from ._adjoint import adjoint_gradient
from ._encoder import EncoderCurve, encoder_risk, encoder_risk_curve, encoder_trajectory, online_encoder_curve
from ._encoder_training import train_encoder
from ._in_context import in_context_encoder, in_context_risk, prompt_moment, prompt_statistics, regress_encoder
from ._methods import METHODS, choose_method
from ._population import population_gradient, population_loss
from ._pretraining import pretrain, wishart_operators
from ._prompts import Prompts, draw_prompts, project_to_box
from ._rollout import apply_operators, rollout, training_loss, trajectory
from ._tangent import rollout_kernel
from ._weak_form import CoefficientEstimate, WeakFormEncoder

__all__ = [
    "METHODS",
    "CoefficientEstimate",
    "EncoderCurve",
    "Prompts",
    "WeakFormEncoder",
    "adjoint_gradient",
    "apply_operators",
    "choose_method",
    "draw_prompts",
    "encoder_risk",
    "encoder_risk_curve",
    "encoder_trajectory",
    "in_context_encoder",
    "in_context_risk",
    "online_encoder_curve",
    "population_gradient",
    "population_loss",
    "pretrain",
    "project_to_box",
    "prompt_moment",
    "prompt_statistics",
    "regress_encoder",
    "rollout",
    "rollout_kernel",
    "train_encoder",
    "training_loss",
    "trajectory",
    "wishart_operators",
]
