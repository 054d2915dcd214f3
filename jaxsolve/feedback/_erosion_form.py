"""The initial erosion as a function of the feedback: its fast forms, and its exact moments and laws."""

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from .._results import RESULTS
from .._types import ArrayLike, Scalar
from ._connections import Dense
from ._erosion import backprop_pass, check_examples, failures, raised
from ._network import MLP, AbstractNetwork

Matrices = Sequence[Float[Array, "_ _"]]


class ErosionForm(eqx.Module):
    """The initial erosion of one network, batch and cotangent, as a polynomial in the feedback matrices.

    With `M_l = φ'_l ⊙ (h_{l−1} (g_l^BP)^T) / speed_BP`, taken from one forward and one backward pass,

        e_0 = hidden share − Σ_{l<L} ⟨M_l, δ_{l+1} B_l^T⟩,   δ_l = (δ_{l+1} B_l^T) ⊙ φ'_l,   δ_L = cotangent

    for feedback alignment, and with `δ_L` in the place of every `δ_{l+1}` for direct feedback alignment. No weight
    gradient is formed per draw of the feedback: that saves `N n_l n_{l−1}` operations in every hidden layer.

    Made by [`erosion_form`][].

    Attributes
    ----------
    sensitivities
        `M_1, …, M_{L−1}`, the derivatives of `−e_0` by the signals `δ_{l+1} B_l^T` of layer `l` alone.
    gates
        `φ'_1, …, φ'_{L−1}`.
    cotangent
        `δ_L`, divided by its largest entry; the erosion does not depend on its scale.
    hidden_share
        Share of the hidden layers in the speed of backpropagation: the erosion without any feedback, and its mean
        over independent feedback of mean zero.
    result
        ``RESULTS.not_finite``, ``RESULTS.no_speed`` or success; without success everything that follows is NaN.
    """

    sensitivities: tuple[Float[Array, "examples _"], ...]
    gates: tuple[Float[Array, "examples _"], ...]
    cotangent: Float[Array, "examples outputs"]
    hidden_share: Scalar
    result: RESULTS

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of the network."""
        return self.cotangent.dtype

    def shapes(self, *, direct: bool = False) -> tuple[tuple[int, int], ...]:
        """Shapes of `B_1, …, B_{L−1}`, sequential or direct."""
        hidden = [gate.shape[1] for gate in self.gates]
        outputs = self.cotangent.shape[1]
        return tuple((width, outputs) for width in hidden) if direct else tuple(pairwise((*hidden, outputs)))

    def sequential(self, feedback: Matrices) -> Scalar:
        """The erosion of feedback alignment with `B_1, …, B_{L−1}`.

        Raises
        ------
        ValueError
            Where the matrices do not fit.
        """
        self._check(feedback, direct=False)
        total, delta = jnp.zeros((), self.dtype), self.cotangent
        for layer in reversed(range(len(feedback))):
            sensitivity, matrix = self.sensitivities[layer], feedback[layer]
            signal = _product(delta, matrix.T)
            if layer == len(feedback) - 1:  # without an axis of examples: the left factor is the same in every draw
                total = total + jnp.sum(_product(sensitivity.T, delta) * matrix)
            else:
                total = total + jnp.sum(sensitivity * signal)
            delta = signal * self.gates[layer]
        return self.hidden_share - total

    def direct(self, feedback: Matrices) -> Scalar:
        """The erosion of direct feedback alignment, affine in every matrix: `hidden share − Σ_l ⟨C_l, B_l⟩`.

        Raises
        ------
        ValueError
            Where the matrices do not fit.
        """
        self._check(feedback, direct=True)
        pairs = zip(self.direct_coefficients(), feedback, strict=True)
        return self.hidden_share - sum((jnp.sum(one * other) for one, other in pairs), jnp.zeros((), self.dtype))

    def direct_coefficients(self) -> tuple[Float[Array, "_ outputs"], ...]:
        """`C_l = M_l^T δ_L`, the coefficients of the entries of direct feedback matrices."""
        return tuple(_product(one.T, self.cotangent) for one in self.sensitivities)

    def sequential_variance(self, variances: Float[ArrayLike, " hidden"] | Sequence[float]) -> Scalar:
        """Exact variance of the erosion over independent feedback alignment matrices, at any depth.

        With entries of mean zero and variance `σ_l²`, Gaussian or not, and `S_L = δ_L δ_L^T`,

            Var e_0 = Σ_l σ_l² Σ_{n,m} (M_l M_l^T ⊙ S_{l+1})_{nm},   S_l = σ_l² S_{l+1} ⊙ (φ'_l φ'_l^T).

        `O(N² Σ_l n_l)` operations.

        Raises
        ------
        ValueError
            Where there is not one variance per hidden layer.
        """
        variances = self.checked_variances(variances)
        total, spread = jnp.zeros((), self.dtype), _product(self.cotangent, self.cotangent.T)
        for layer in reversed(range(len(self.gates))):
            sensitivity, gate = self.sensitivities[layer], self.gates[layer]
            total = total + variances[layer] * jnp.sum(_product(sensitivity, sensitivity.T) * spread)
            spread = variances[layer] * spread * _product(gate, gate.T)
        return total

    def direct_variance(self, variances: Float[ArrayLike, " hidden"] | Sequence[float]) -> Scalar:
        """Exact variance over direct feedback, `Σ_l σ_l² ‖C_l‖²`; with Gaussian entries the erosion is normal.

        That is so at any depth, and for feedback alignment with one hidden layer, which is the same rule.

        Raises
        ------
        ValueError
            Where there is not one variance per hidden layer.
        """
        squares = [jnp.sum(matrix**2) for matrix in self.direct_coefficients()]
        variances = self.checked_variances(variances)
        return sum((one * other for one, other in zip(variances, squares, strict=True)), jnp.zeros((), self.dtype))

    def _check(self, feedback: Matrices, *, direct: bool) -> None:
        found, expected = [matrix.shape for matrix in feedback], list(self.shapes(direct=direct))
        if found != expected or any(matrix.dtype != self.dtype for matrix in feedback):
            raise ValueError(
                f"{'Direct feedback' if direct else 'Feedback'} matrices have shapes {expected} and dtype "
                f"{self.dtype}; got {found} and {[str(matrix.dtype) for matrix in feedback]}."
            )

    def checked_variances(self, variances: Float[ArrayLike, " hidden"] | Sequence[float]) -> Float[Array, " hidden"]:
        """The variances as an array of the dtype of the network; raises where their number is wrong."""
        found = jnp.asarray(variances, self.dtype)
        if found.shape != (len(self.gates),):
            raise ValueError(
                f"variances holds one number per hidden layer, {len(self.gates)}; got shape {found.shape}. "
                "weight_variances(widths)[1:] are those of the weights that feedback alignment replaces."
            )
        return found


def erosion_form(
    network: MLP,
    inputs: Num[ArrayLike, "examples features"],
    cotangent: Float[Array, "examples outputs"],
    *,
    throw: bool = True,
) -> ErosionForm:
    """One forward and one backward pass, kept as the polynomial that the erosion is in the feedback.

    Parameters
    ----------
    network, inputs, cotangent, throw
        As in [`initial_erosion`][].

    Raises
    ------
    ValueError
        As [`initial_erosion`][] does, and for a network with convolutions.

    >>> network = MLP([jnp.eye(2), jnp.ones((1, 2))])
    >>> form = erosion_form(network, jnp.array([[3.0, 0.0]]), jnp.array([[1.0]]))
    >>> feedback = [jnp.array([[2.0], [5.0]])]
    >>> float(form.hidden_share), float(form.sequential(feedback)), float(form.direct_variance([4.0]))
    (0.5, -0.5, 1.0)
    """
    _check_dense(network)
    check_examples(network, inputs, cotangent)
    form, flags = _erosion_form(network, inputs, cotangent)
    return raised(form, flags) if throw else form


def _check_dense(network: AbstractNetwork) -> None:
    """Refuse convolutions, through which errors are not sent by a product with one matrix."""
    for layer, connection in enumerate(network.connections, start=1):
        if not isinstance(connection, Dense):
            raise ValueError(
                f"The polynomial of the erosion is that of dense layers; layer {layer} is a "
                f"{type(connection).__name__}. Use initial_erosion with one rule per draw, under jax.vmap for several."
            )


@eqx.filter_jit
def _erosion_form(network, inputs, cotangent) -> tuple[ErosionForm, RESULTS]:
    forward, exact, scaled, squares = backprop_pass(network, inputs, cotangent)
    total = jnp.sum(squares)
    flags = failures(cotangent, total)
    divisor = jnp.where(jnp.all(flags == RESULTS.successful), total, jnp.nan)
    biases = exact.biases or (None,) * len(exact.weights)
    sensitivities = []
    for hidden, gate, weight, bias in zip(
        forward.activations, forward.gates, exact.weights[:-1], biases[:-1], strict=False
    ):
        moved = _product(hidden, weight.T) if bias is None else _product(hidden, weight.T) + bias[None, :]
        sensitivities.append(gate * moved / divisor)
    form = ErosionForm(
        sensitivities=tuple(sensitivities),
        gates=forward.gates,
        cotangent=scaled,
        hidden_share=jnp.sum(squares[:-1]) / divisor,
        result=jax.tree.map(lambda codes: codes[0], flags),
    )
    return form, flags


def _product(first: Array, second: Array) -> Array:
    return jnp.matmul(first, second, precision="highest")
