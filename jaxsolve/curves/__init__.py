"""Predictors of training curves, and the descent that they are held against."""

from ._descent import descent_curve, loss_drop
from ._frozen_kernel import FrozenKernelCurve, frozen_kernel_curve, tangent_kernel
from ._kernel_prediction import KernelPrediction, predict_descent, predict_gradient_flow
from ._kernel_regression import KernelRegression, RegressionSolver, kernel_regression_tasks
from ._rollout_residual import RolloutResidual, rollout_residual

__all__ = [
    "FrozenKernelCurve",
    "KernelPrediction",
    "KernelRegression",
    "RegressionSolver",
    "RolloutResidual",
    "descent_curve",
    "frozen_kernel_curve",
    "kernel_regression_tasks",
    "loss_drop",
    "predict_descent",
    "predict_gradient_flow",
    "rollout_residual",
    "tangent_kernel",
]
