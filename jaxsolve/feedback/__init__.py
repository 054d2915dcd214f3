"""Backpropagation and its alternatives: networks, backward rules and the laws of their feedback."""

from ._activations import AbstractActivation, Gelu, Identity, Relu, Tanh
from ._alignment import SquaredCosineLaw, alignment
from ._capacity import (
    SurprisalLaw,
    alignment_cost,
    chance_threshold_cost,
    draw_squared_cosines,
    log_cap_fraction,
)
from ._network import MLP, ForwardPass, weight_variances
from ._rules import (
    AbstractBackwardRule,
    AbstractSequentialRule,
    Backprop,
    DirectFeedbackAlignment,
    FeedbackAlignment,
)

__all__ = [
    "MLP",
    "AbstractActivation",
    "AbstractBackwardRule",
    "AbstractSequentialRule",
    "Backprop",
    "DirectFeedbackAlignment",
    "FeedbackAlignment",
    "ForwardPass",
    "Gelu",
    "Identity",
    "Relu",
    "SquaredCosineLaw",
    "SurprisalLaw",
    "Tanh",
    "alignment",
    "alignment_cost",
    "chance_threshold_cost",
    "draw_squared_cosines",
    "log_cap_fraction",
    "weight_variances",
]
