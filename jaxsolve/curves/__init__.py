"""Predictors of training curves, and the descent that they are held against."""

from ._commutant import (
    AbstractSymmetry,
    CyclicSymmetry,
    OrthogonalSymmetry,
    SignSymmetry,
    commutant_descent,
    commutant_gradient,
)
from ._commuting import commuting_descent, commuting_flow, commuting_gradient, commuting_loss, commuting_optimum
from ._constraint_count import GapOverWidths, constraint_count_gap, training_gap
from ._descent import descent_curve, loss_drop
from ._flow import Flow, integrate
from ._frozen_kernel import FrozenKernelCurve, frozen_kernel_curve, tangent_kernel
from ._kernel_prediction import KernelPrediction, predict_descent, predict_gradient_flow
from ._kernel_regression import KernelRegression, RegressionSolver, kernel_regression_tasks
from ._population_descent import periodic_diffusion, population_descent
from ._quadratic import (
    OneStepCurve,
    OneStepMoments,
    one_step_descent,
    one_step_flow,
    one_step_mode_flow,
    one_step_moments,
    wishart_one_step_moments,
)
from ._rollout_residual import RolloutResidual, rollout_residual
from ._stability import (
    PairHessian,
    commuting_hessian,
    independent_saddle_ratio,
    saddle_ratio,
    second_variation,
    small_spread_ratio,
)
from ._wishart import WishartHessian, isotropic_wishart_hessian, marchenko_pastur, wishart_loss, wishart_resolvent
from ._wishart_moments import SecondVariations, wishart_best_gain, wishart_second_variations, wishart_trace_moment

__all__ = [
    "AbstractSymmetry",
    "CyclicSymmetry",
    "Flow",
    "FrozenKernelCurve",
    "GapOverWidths",
    "KernelPrediction",
    "KernelRegression",
    "OneStepCurve",
    "OneStepMoments",
    "OrthogonalSymmetry",
    "PairHessian",
    "RegressionSolver",
    "RolloutResidual",
    "SecondVariations",
    "SignSymmetry",
    "WishartHessian",
    "commutant_descent",
    "commutant_gradient",
    "commuting_descent",
    "commuting_flow",
    "commuting_gradient",
    "commuting_hessian",
    "commuting_loss",
    "commuting_optimum",
    "constraint_count_gap",
    "descent_curve",
    "frozen_kernel_curve",
    "independent_saddle_ratio",
    "integrate",
    "isotropic_wishart_hessian",
    "kernel_regression_tasks",
    "loss_drop",
    "marchenko_pastur",
    "one_step_descent",
    "one_step_flow",
    "one_step_mode_flow",
    "one_step_moments",
    "periodic_diffusion",
    "population_descent",
    "predict_descent",
    "predict_gradient_flow",
    "rollout_residual",
    "saddle_ratio",
    "second_variation",
    "small_spread_ratio",
    "tangent_kernel",
    "training_gap",
    "wishart_best_gain",
    "wishart_loss",
    "wishart_one_step_moments",
    "wishart_resolvent",
    "wishart_second_variations",
    "wishart_trace_moment",
]
