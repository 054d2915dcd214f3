"""Preconditioners: free, attention between the unknowns, and classical; shared by all tasks or one per task."""

from ._abstract import AbstractPreconditioner
from ._attention import AbstractAttention, AbstractFeatureAttention
from ._classical import AbstractClassical
from ._flexformer import Flexformer
from ._free_linear import FreeLinear
from ._jacobi import Jacobi
from ._linear_attention import LinearAttention
from ._positive_feature_attention import PositiveFeatureAttention
from ._scaled_mean_inverse import ScaledMeanInverse
from ._softmax_attention import SoftmaxAttention
from ._tokens import OperatorTokens, position_tokens

__all__ = [
    "AbstractAttention",
    "AbstractClassical",
    "AbstractFeatureAttention",
    "AbstractPreconditioner",
    "Flexformer",
    "FreeLinear",
    "Jacobi",
    "LinearAttention",
    "OperatorTokens",
    "PositiveFeatureAttention",
    "ScaledMeanInverse",
    "SoftmaxAttention",
    "position_tokens",
]
