"""Figures of the learned solver: gains, paths, attention, risk, order parameters, identities and closures."""

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from .. import theories
from .._numerics import machine_epsilon
from ..evidence import Curve, IdentityRule, evaluate
from ._closure import draw_closure_curves, draw_stability_map
from ._closure_data import closure_curves, stability_map
from ._data import relative_differences
from ._figure import _STYLE
from ._gallery_setup import DEPTH, SEED, new_figure, trained_attention, trained_preconditioner, wishart_systems
from ._solver import (
    draw_attention_modes,
    draw_contraction,
    draw_gain_spectrum,
    draw_identity_errors,
    draw_order_parameters,
    draw_phase_portrait,
    draw_plateaus,
    draw_risk_overlay,
)
from ._solver_data import (
    GainSpectrum,
    attention_modes,
    gain_spectrum,
    order_parameter_path,
    phase_path,
    risk_overlay,
)


@rc_context(_STYLE)
def learned_gain() -> Figure:
    """Gains of a trained free matrix in the modes of the mean operator, and its worst contraction."""
    data = learned_gain_data()
    figure, axes = new_figure(1, 2, title="Gains of a trained preconditioner against the inverse spectrum")
    draw_gain_spectrum(axes[0, 0], data)
    draw_contraction(axes[0, 1], data)
    return figure


def learned_gain_data() -> GainSpectrum:
    """The data of [`learned_gain`][], also for its animation."""
    trained = trained_preconditioner()
    return gain_spectrum(trained.preconditioners, np.asarray(trained.systems.operators), trained.steps)


@rc_context(_STYLE)
def phase_portrait() -> Figure:
    """The plain update zigzags along the stiff direction, the preconditioned one goes straight."""
    operator = np.diag([1.0, 0.08])
    paths = {
        "P = 1.85 I": phase_path(1.85 * np.eye(2), operator, np.ones(2), depth=30),
        "P = 0.6 inverse of H": phase_path(0.6 * np.linalg.inv(operator), operator, np.ones(2), depth=30),
    }
    figure, axes = new_figure(1, 1, title="Paths of the error, eigenvalues 1 and 0.08", size=(6.5, 4.8))
    draw_phase_portrait(axes[0, 0], paths, operator=operator)
    return figure


@rc_context(_STYLE)
def attention_mode_maps() -> Figure:
    """Heads of softmax attention and their preconditioner in eigenmodes, before and after training."""
    systems = wishart_systems(64, seed=SEED)
    operators = np.asarray(systems.operators)
    models = dict(zip(("before", "after"), trained_attention(), strict=True))
    figure, axes = new_figure(2, 3, title="Attention in the eigenvectors of the mean operator", size=(10.5, 7.0))
    for row, (when, model) in zip(axes, models.items(), strict=True):
        assert isinstance(model.tokens, jax.Array)
        heads = np.asarray(model.attention(model.tokens))
        data = attention_modes(np.concatenate([heads, np.asarray(model.matrix(systems.operators))[None]]), operators)
        for index, (axis, name) in enumerate(zip(row, ("head 1", "head 2", "preconditioner"), strict=True)):
            image = draw_attention_modes(axis, data, index, name=f"{name}, {when} training")
            figure.colorbar(image, ax=axis, shrink=0.85, label="entry")
    return figure


@rc_context(_STYLE)
def certified_risk() -> Figure:
    """Risk of a trained decoder on new systems under three bounds."""
    held_out = wishart_systems(128, seed=SEED + 1)
    data = risk_overlay(
        trained_preconditioner().preconditioners[-1],
        held_out.operators,
        held_out.solutions,
        held_out.initial,
        depth=DEPTH,
    )
    figure, axes = new_figure(1, 2, title="Risk on 128 held-out systems, and certificates known before the run")
    draw_risk_overlay(axes[0, 0], axes[0, 1], data)
    return figure


@rc_context(_STYLE)
def order_parameter_paths() -> Figure:
    """Order parameters of a preconditioner in training."""
    trained = trained_preconditioner()
    data = order_parameter_path(trained.preconditioners, trained.systems.operators, jnp.eye(16), trained.steps)
    figure, axes = new_figure(1, 1, title="Order parameters during training, S = I", size=(6.5, 4.2))
    draw_order_parameters(axes[0, 0], data)
    return figure


@rc_context(_STYLE)
def identity_errors() -> Figure:
    """Two identities over depth: the error power of the decoder, and the linear transformer as a decoder."""
    errors = {}
    for label, name, observable in (
        ("error = power of I − PH, times the first", "richardson_identity", "error"),
        ("linear transformer = iteration", "linear_transformer_richardson", "output"),
    ):
        theory = theories.load(name)
        assert isinstance(theory.rule, IdentityRule)
        pair = evaluate(theory.quick(), key=jax.random.key(0)).pairs[observable]
        assert isinstance(pair.predicted, Curve)
        difference = relative_differences(pair, relative_to=theory.rule.relative_to)
        errors[label] = np.asarray(pair.predicted.grid), difference
    figure, axes = new_figure(1, 1, title="Identities hold to rounding at every depth", size=(6.5, 4.2))
    draw_identity_errors(axes[0, 0], errors, epsilon=machine_epsilon(jnp.zeros(()).dtype))
    return figure


@rc_context(_STYLE)
def attention_plateaus() -> Figure:
    """Training of rank-one attention rests on one plateau per direction."""
    theory = theories.load("attention_plateaus").quick()
    gain = theories.load("attention_gain").quick()
    trained = theory.simulate(theory.grid(), key=jax.random.key(0))["loss"]
    predicted = gain.predict(gain.grid())["loss"]
    assert isinstance(trained, Curve)
    assert isinstance(predicted, Curve)
    figure, axes = new_figure(1, 1, title="Linear attention learns one direction after the other", size=(6.5, 4.2))
    draw_plateaus(axes[0, 0], np.asarray(trained.grid), 2 * np.asarray(trained.value)[0], np.asarray(predicted.value))
    return figure


@rc_context(_STYLE)
def population_closure() -> Figure:
    """Training of scalars against training of all entries, where the closure is a minimum and where it is a saddle."""
    spread, steps = np.array([0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.7]), 1500
    eigenvalues = np.stack(np.meshgrid(spread, spread), axis=-1).reshape(-1, 2)
    disturbance = 1e-3 * np.random.default_rng(SEED).standard_normal((2, 2))
    figure, axes = new_figure(1, 2, title="Two modes with independent eigenvalues: depths 2 and 4")
    for axis, depth in zip(axes[0], (2, 4), strict=True):
        data = closure_curves(
            np.full(2, 0.4), eigenvalues, disturbance=disturbance, depth=depth, learning_rate=0.5, steps=steps
        )
        draw_closure_curves(axis, data, steps=steps)
    return figure


@rc_context(_STYLE)
def closure_stability() -> Figure:
    """Where the diagonal is left: depth against the heterogeneity of tasks."""
    data = stability_map(range(2, 9), np.linspace(0.05, 0.95, 19))
    figure, axes = new_figure(
        1, 1, title="Is diagonal training a saddle? Uniform independent eigenvalues", size=(6.5, 4.4)
    )
    draw_stability_map(axes[0, 0], data)
    return figure
