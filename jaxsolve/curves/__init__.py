"""Predictors of training curves, and the descent that they are held against."""

from ._constraint_count import constraint_count_gap, training_gap
from ._descent import descent_curve, loss_drop
from ._frozen_kernel import FrozenKernelCurve, frozen_kernel_curve, tangent_kernel
from ._kernel_regression import KernelRegression, RegressionSolver, kernel_regression_tasks
from ._rollout_residual import RolloutResidual, rollout_residual

__all__ = [
    "FrozenKernelCurve",
    "KernelRegression",
    "RegressionSolver",
    "RolloutResidual",
    "constraint_count_gap",
    "descent_curve",
    "frozen_kernel_curve",
    "kernel_regression_tasks",
    "loss_drop",
    "rollout_residual",
    "tangent_kernel",
    "training_gap",
]
