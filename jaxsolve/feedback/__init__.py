"""Backpropagation and its alternatives: networks, backward rules and the laws of their feedback."""

from ._activations import AbstractActivation, Erf, Gelu, Identity, Relu, Tanh
from ._alignment import SquaredCosineLaw, alignment
from ._network import MLP, ForwardPass, TangentFactor, weight_variances
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
    "Erf",
    "FeedbackAlignment",
    "ForwardPass",
    "Gelu",
    "Identity",
    "Relu",
    "SquaredCosineLaw",
    "TangentFactor",
    "Tanh",
    "alignment",
    "weight_variances",
]
