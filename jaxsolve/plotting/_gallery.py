"""Figures of small runs that need no folder: each trains what it shows, in seconds."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int
from matplotlib import rc_context
from matplotlib.figure import Figure

from .. import theories
from .._files import atomic_write
from .._numerics import machine_epsilon
from .._train import descend
from ..certificates import DiagnosedTasks, diagnose, prompted_diffusion
from ..evidence import Curve, IdentityRule, evaluate
from ..feedback import (
    MLP,
    AnisotropicFeedback,
    FixedAxisFeedback,
    IsotropicFeedback,
    LowRankFeedback,
    OrthogonalFeedback,
    RandomAxisFeedback,
    SignFeedback,
    SparseFeedback,
    SubspaceFeedback,
)
from ..pde import ParametricDiffusion, cosine_modes, interval_grid, quadrant_modes, square_grid
from ..preconditioners import AbstractPreconditioner, Flexformer, SoftmaxAttention, position_tokens
from ..solver import (
    adjoint_gradient,
    in_context_encoder,
    in_context_risk,
    prompt_statistics,
    regress_encoder,
    rollout,
    training_loss,
)
from ._closure import draw_closure_curves, draw_stability_map
from ._closure_data import closure_curves, stability_map
from ._data import relative_differences
from ._erosion import draw_erosion_histogram, draw_erosion_shares
from ._erosion_data import erosion_histogram, erosion_shares
from ._feedback import draw_alignment_tails, draw_worst_coverage
from ._feedback_data import alignment_tails, worst_coverages
from ._figure import _STYLE, DOTS_PER_INCH, to_png
from ._parametric import draw_certified_errors
from ._parametric_data import certified_errors
from ._solver import (
    draw_attention_modes,
    draw_contraction,
    draw_gain_spectrum,
    draw_identity_errors,
    draw_order_parameters,
    draw_phase_portrait,
    draw_plateaus,
    draw_risk_overlay,
    save_gain_animation,
)
from ._solver_data import (
    GainSpectrum,
    attention_modes,
    gain_spectrum,
    order_parameter_path,
    phase_path,
    risk_overlay,
)
from ._sources import draw_composition, draw_diagnosis, draw_scaling_axis
from ._sources_data import cause_shares, composition_path, scaling_axis

SEED = 30
DEPTH = 8


class Systems(NamedTuple):
    """Random linear systems with Wishart operators `S^{1/2} W S^{1/2}`, solutions `N(0, I)`, starts at zero.

    `S` is diagonal with 16 entries from 0.1 to 1, spaced evenly in the logarithm; `W` has 128 degrees of freedom and
    mean `I`.
    """

    operators: Float[Array, "tasks size size"]
    solutions: Float[Array, "tasks size"]
    initial: Float[Array, "tasks size"]


def wishart_systems(tasks: int, *, seed: int) -> Systems:
    """``tasks`` independent [`Systems`][] of size 16."""
    generator = np.random.default_rng(seed)
    scale = np.sqrt(np.logspace(-1, 0, 16))
    rows = generator.standard_normal((tasks, 128, 16)) * scale
    operators = np.einsum("tni,tnj->tij", rows, rows) / 128
    solutions = generator.standard_normal((tasks, 16))
    return Systems(*(jnp.asarray(array, float) for array in (operators, solutions, np.zeros_like(solutions))))


class Trained(NamedTuple):
    """Preconditioners saved while training a free matrix on [`Systems`][]."""

    steps: Int[np.ndarray, " saved"]
    preconditioners: Float[np.ndarray, "saved size size"]
    systems: Systems


@cache
def trained_preconditioner(steps: int = 800) -> Trained:
    """A free matrix from `P = I`, trained at depth 8 on 128 systems by Adam, saved 40 times."""
    systems = wishart_systems(128, seed=SEED)
    gradient = eqx.Partial(
        adjoint_gradient,
        operators=systems.operators,
        right_hand_sides=_sides(systems),
        initial=systems.initial,
        solutions=systems.solutions,
        depth=DEPTH,
    )
    optimizer = optax.adam(optax.cosine_decay_schedule(1e-2, steps))
    run = descend(gradient, jnp.eye(16), optimizer, steps=steps, observe=jnp.asarray, record_every=steps // 40)
    return Trained(np.asarray(run.recorded_steps), np.asarray(run.records), systems)


@cache
def trained_attention(steps: int = 400) -> tuple[SoftmaxAttention, SoftmaxAttention]:
    """Softmax attention of two heads before and after training on 64 of the same kind of systems."""
    systems = wishart_systems(64, seed=SEED)
    before = SoftmaxAttention.initialise(position_tokens(16), heads=2, key=jax.random.key(SEED))
    optimizer = optax.adam(optax.cosine_decay_schedule(1e-2, steps))
    gradient = eqx.Partial(_rollout_gradient, systems, DEPTH)
    run = descend(gradient, before, optimizer, steps=steps, trainable=before.trainable())
    return before, run.parameters


@rc_context(_STYLE)
def learned_gain() -> Figure:
    """Gains of a trained free matrix in the modes of the mean operator, and its worst contraction."""
    data = learned_gain_data()
    figure, axes = _figure(1, 2, title="Gains of a trained preconditioner against the inverse spectrum")
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
    figure, axes = _figure(1, 1, title="Paths of the error, eigenvalues 1 and 0.08", size=(6.5, 4.8))
    draw_phase_portrait(axes[0, 0], paths, operator=operator)
    return figure


@rc_context(_STYLE)
def attention_mode_maps() -> Figure:
    """Heads of softmax attention and their preconditioner in eigenmodes, before and after training."""
    systems = wishart_systems(64, seed=SEED)
    operators = np.asarray(systems.operators)
    models = dict(zip(("before", "after"), trained_attention(), strict=True))
    figure, axes = _figure(2, 3, title="Attention in the eigenvectors of the mean operator", size=(10.5, 7.0))
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
    figure, axes = _figure(1, 2, title="Risk on 128 held-out systems, and certificates known before the run")
    draw_risk_overlay(axes[0, 0], axes[0, 1], data)
    return figure


@rc_context(_STYLE)
def order_parameter_paths() -> Figure:
    """Order parameters of a preconditioner in training."""
    trained = trained_preconditioner()
    data = order_parameter_path(trained.preconditioners, trained.systems.operators, jnp.eye(16), trained.steps)
    figure, axes = _figure(1, 1, title="Order parameters during training, S = I", size=(6.5, 4.2))
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
    figure, axes = _figure(1, 1, title="Identities hold to rounding at every depth", size=(6.5, 4.2))
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
    figure, axes = _figure(1, 1, title="Linear attention learns one direction after the other", size=(6.5, 4.2))
    draw_plateaus(axes[0, 0], np.asarray(trained.grid), 2 * np.asarray(trained.value)[0], np.asarray(predicted.value))
    return figure


@rc_context(_STYLE)
def alignment_tail() -> Figure:
    """The law of the static alignment against draws, in four dimensions."""
    data = alignment_tails(np.array([64.0, 256.0, 1024.0, 4096.0]), draws=50_000, key=jax.random.key(SEED))
    figure, axes = _figure(1, 1, title="Alignment of random feedback by chance", size=(6.5, 4.6))
    draw_alignment_tails(axes[0, 0], data)
    return figure


@rc_context(_STYLE)
def feedback_coverage() -> Figure:
    """What laws of feedback make of their worst target, and what a sample makes of the law."""
    shape = (4, 8)
    ensembles = {
        "isotropic": IsotropicFeedback(shape),
        "signs": SignFeedback(shape),
        "orthogonal": OrthogonalFeedback(shape),
        "rank one": LowRankFeedback(shape, rank=1),
        "sparse, 4 of 32": SparseFeedback(shape, entries=4),
        "random axis": RandomAxisFeedback(shape),
        "anisotropic": AnisotropicFeedback(shape, np.geomspace(10, 1, 32)),
        "subspace of 16": SubspaceFeedback(shape, rank=16),
        "fixed axis": FixedAxisFeedback(shape),
    }
    data = worst_coverages(ensembles, (300, 2000, 20_000), key=jax.random.key(SEED))
    figure, axes = _figure(1, 1, title="Coverage of the worst target, 32 entries", size=(7.5, 5.0))
    draw_worst_coverage(axes[0, 0], data)
    return figure


@rc_context(_STYLE)
def initial_erosion() -> Figure:
    """What random feedback loses in the first step: a normal law, and the share of the hidden layers as its mean."""
    generator = np.random.default_rng(SEED)
    inputs, targets = (jnp.asarray(generator.standard_normal((128, size)), float) for size in (16, 4))
    network = MLP.initialise((16, 32, 4), key=jax.random.key(SEED))
    law = erosion_histogram(network, inputs, targets, count=4096, key=jax.random.key(0))
    shares = erosion_shares((16, 32, 64), inputs, targets, key=jax.random.key(1))
    figure, axes = _figure(1, 2, title="Initial erosion of feedback alignment, with one and with two hidden layers")
    draw_erosion_histogram(axes[0, 0], law)
    draw_erosion_shares(axes[0, 1], shares)
    return figure


@rc_context(_STYLE)
def population_closure() -> Figure:
    """Training of scalars against training of all entries, where the closure is a minimum and where it is a saddle."""
    spread, steps = np.array([0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.7]), 1500
    eigenvalues = np.stack(np.meshgrid(spread, spread), axis=-1).reshape(-1, 2)
    disturbance = 1e-3 * np.random.default_rng(SEED).standard_normal((2, 2))
    figure, axes = _figure(1, 2, title="Two modes with independent eigenvalues: depths 2 and 4")
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
    figure, axes = _figure(
        1, 1, title="Is diagonal training a saddle? Uniform independent eigenvalues", size=(6.5, 4.4)
    )
    draw_stability_map(axes[0, 0], data)
    return figure


@rc_context(_STYLE)
def composition_bars() -> Figure:
    """Encoder floor and decoder part of the risk while a learnable-kernel decoder trains."""
    depth, saved = 3, 6
    generator = np.random.default_rng(SEED)
    training = prompted_diffusion(128, noise=0.265, generator=generator)
    held_out = prompted_diffusion(256, noise=0.265, generator=generator)
    systems = Systems(jnp.asarray(training.operators), jnp.asarray(training.solutions), jnp.zeros((128, 16)))
    start = Flexformer.initialise(position_tokens(16), key=jax.random.key(SEED))
    run = descend(
        eqx.Partial(_rollout_gradient, systems, depth),
        start,
        optax.adam(optax.cosine_decay_schedule(1e-2, 60 * saved)),
        steps=60 * saved,
        observe=lambda model: model.matrix(systems.operators[:1]),
        record_every=60,
        trainable=start.trainable(),
    )
    sides = np.einsum("tij,tj->ti", held_out.operators, held_out.solutions)
    data = composition_path(
        run.records[1:], held_out.estimates, sides, held_out.solutions, run.recorded_steps[1:], depth=depth
    )
    figure, axes = _figure(1, 1, title="Risk behind an encoder, held-out tasks, depth 3", size=(6.5, 4.4))
    draw_composition(axes[0, 0], data)
    return figure


@rc_context(_STYLE)
def scaling_axes() -> Figure:
    """The error of an encoder over the size of a prompt, and its excess over the number of pretraining tasks."""
    size, replicates, noise = 12, 24, jnp.array(0.01)
    variances = np.linspace(1, 0.4, 3)
    covariance = jnp.diag(jnp.asarray(np.pad(variances, (0, size - 3))))
    keys = jax.random.split(jax.random.key(SEED), 3)
    flat = jax.random.normal(keys[0], (replicates * 1024, 3)) * jnp.sqrt(jnp.asarray(variances))[None, :]
    tasks = jnp.pad(flat, ((0, 0), (0, size - 3)))
    prompts, errors, exact = np.array([16, 128, 1024]), [], []
    for prompt_size in prompts:
        prompt = {"prompt_size": int(prompt_size), "noise_variance": noise}
        best = in_context_encoder(covariance, **prompt)
        tried = tasks[: 32 * replicates]
        answers = prompt_statistics(tried, key=keys[1], **prompt) @ best.T
        errors.append(np.sum(np.asarray(answers - tried) ** 2, axis=1).reshape(replicates, 32).mean(axis=1))
        exact.append(float(in_context_risk(best, covariance, **prompt)))
    prompt = {"prompt_size": 32, "noise_variance": noise}
    seen = prompt_statistics(tasks, key=keys[2], **prompt).reshape(replicates, 1024, size)
    shown = tasks.reshape(replicates, 1024, size)
    least = in_context_risk(in_context_encoder(covariance, **prompt), covariance, **prompt)
    counts, excess = np.array([64, 256, 1024]), []
    for count in counts:
        encoders = jax.vmap(regress_encoder)(seen[:, :count], shown[:, :count])
        risks = jax.vmap(lambda encoder: in_context_risk(encoder, covariance, **prompt))(encoders)
        excess.append(np.asarray(risks / least) - 1)
    figure, axes = _figure(1, 2, title="Two sample sizes of an encoder of prompts, tasks of 12 entries and rank 3")
    names = ("pairs in a prompt m", "error of the best encoder"), ("pretraining tasks N", "excess risk over the best")
    for axis, sizes, values, line, (size_name, error_name) in zip(
        axes[0], (prompts, counts), (errors, excess), (np.array(exact), None), names, strict=True
    ):
        data = scaling_axis(sizes.astype(float), np.stack(values, axis=1), line)
        draw_scaling_axis(axis, data, size_name=size_name, error_name=error_name)
    return figure


@rc_context(_STYLE)
def error_diagnosis() -> Figure:
    """Four runs with one fault each, and what a diagnosis finds."""
    theory = theories.load("error_causes").quick()
    names = ("noisy prompts", "two training tasks", "multiples of identity", "one step")
    generator, found = np.random.default_rng(SEED), {}
    for name, situation, depth in zip(names, theory.situations, theory.depths, strict=True):  # pyright: ignore[reportAttributeAccessIssue]
        loads = jnp.asarray(generator.standard_normal(situation.operators.shape[:2]))
        solutions = jnp.einsum("tij,tj->ti", situation.responses, loads, precision="highest")
        found[name] = diagnose(
            eqx.Partial(_constant, situation.preconditioner),
            _read,
            DiagnosedTasks(situation.training_operators, situation.training_solutions),
            DiagnosedTasks(situation.operators, solutions, situation.estimates),
            eqx.Partial(_constant, situation.best),
            depth=depth,
            converged_depth=64,
        )
    figure, axes = _figure(1, 1, title="Diagnoses of four runs, each with one fault built in", size=(8.5, 4.4))
    draw_diagnosis(axes[0, 0], cause_shares(found))
    return figure


@rc_context(_STYLE)
def parametric_certificate() -> Figure:
    """Errors of the mean operator's inverse under a certificate that follows from the coefficient alone."""
    line, plane = interval_grid(31), square_grid(7)
    families = {
        "interval, four cosines": ParametricDiffusion(line, cosine_modes(line)),
        "square, four quadrants": ParametricDiffusion(plane, quadrant_modes(plane)),
    }
    generator = np.random.default_rng(SEED)
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 4), axis=-1).reshape(-1, 4)
    parameters = np.concatenate([corners, generator.uniform(-1, 1, (112, 4))])
    figure, axes = _figure(1, 2, title="Diffusion on 112 tasks of the box and its 16 corners, P from the mean operator")
    for axis, (name, family) in zip(axes[0], families.items(), strict=True):
        starts = generator.standard_normal((len(parameters), len(family.mean_operator)))
        draw_certified_errors(axis, certified_errors(family, parameters, starts, depth=12), name=name)
    return figure


GALLERY: Mapping[str, Callable[[], Figure]] = MappingProxyType(
    {
        "alignment-tail": alignment_tail,
        "attention-modes": attention_mode_maps,
        "attention-plateaus": attention_plateaus,
        "certified-risk": certified_risk,
        "closure-stability": closure_stability,
        "composition-bars": composition_bars,
        "error-diagnosis": error_diagnosis,
        "feedback-coverage": feedback_coverage,
        "identity-errors": identity_errors,
        "initial-erosion": initial_erosion,
        "learned-gain": learned_gain,
        "order-parameters": order_parameter_paths,
        "parametric-certificate": parametric_certificate,
        "phase-portrait": phase_portrait,
        "population-closure": population_closure,
        "scaling-axes": scaling_axes,
    }
)
"""Figures by name, in alphabetical order; each function takes nothing and makes its own small run."""


def save_gallery_figure(name: str, directory: Path) -> tuple[Path, ...]:
    """Make a picture of the gallery and write it to ``directory``; ``learned-gain`` comes with its animation.

    Returns
    -------
    tuple[Path, ...]
        The files written: ``<name>.png``, and ``<name>.gif`` where there is an animation.

    Raises
    ------
    OSError
        Where a file cannot be written.
    """
    picture = directory / f"{name}.png"
    atomic_write(picture, to_png(GALLERY[name]()))
    if name != "learned-gain":
        return (picture,)
    animation = directory / f"{name}.gif"
    save_gain_animation(animation, learned_gain_data())
    return picture, animation


def _sides(systems: Systems) -> Float[Array, "tasks size"]:
    return jnp.einsum("tij,tj->ti", systems.operators, systems.solutions, precision="highest")


def _constant(matrix, operators):
    return matrix


def _read(prompts):
    return prompts


def _rollout_gradient(systems: Systems, depth: int, model: AbstractPreconditioner):
    def loss(model):
        matrix = model.matrix(systems.operators)
        final = rollout(matrix, systems.operators, _sides(systems), systems.initial, depth=depth)
        return training_loss(final, systems.solutions)

    return eqx.filter_value_and_grad(loss)(model)


def _figure(rows: int, columns: int, *, title: str, size: tuple[float, float] = (10.5, 4.2)):
    figure = Figure(figsize=size, dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    figure.suptitle(title, fontweight="bold", x=0.01, horizontalalignment="left")
    return figure, axes
