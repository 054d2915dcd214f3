"""Claims of document 000: which curve of a learned solver's training is exact, and which is local."""

from dataclasses import replace

from ._claim import Claim, Document, Measure
from ._reading import CurveError, CurveValue, Discrepancy, LargestDiscrepancy, SmallestRatio
from ._rules import AtMost, NoViolations, Within

DOCUMENT = Document(
    slug="solver-training",
    number="000",
    title="Training dynamics of a transformer that learns a preconditioner",
    bibtex="""@misc{solver-training,
  title = {Training dynamics of a transformer that learns a preconditioner},
  note = {source document 000}
}""",
)

RICHARDSON = Measure(observable="error", reading=Discrepancy())
ADJOINT = Measure(observable="gradient", reading=Discrepancy())
RECURSION = Measure(theory="parameter_recursion", observable="parameters", reading=Discrepancy())
CERTIFICATE = Measure(theory="richardson_certificate", observable="free_linear", reading=LargestDiscrepancy())
LINEARISED = Measure(observable="loss", reading=Discrepancy())
MIXED_TRACE = Measure(theory="mixed_traces", observable="trace", reading=SmallestRatio(5.0))
GAIN = Measure(observable="gain_error", reading=Discrepancy())
PORTRAIT = Measure(observable="near_inverse", reading=LargestDiscrepancy())
SAME_SPECTRUM = Measure(observable="risk", reading=SmallestRatio(100.0))

ONLINE = Measure(
    theory="online_encoder",
    observable="ratio",
    reading=CurveValue(800.0),
    rule=Within(absolute=1.7e-4),
    configuration="batches-of-512",
    options={
        "size": 32,
        "inputs": 8,
        "steps": 800,
        "batch": 512,
        "points": 16,
        "noise_variance": 4e-4,
        "held_out": 512,
        "replicates": 16,
    },
)
TRAJECTORY = Measure(observable="error", reading=Discrepancy())

CLAIMS: tuple[Claim, ...] = (
    *DOCUMENT.rows(
        """
        # opening; plots
        1, 4  bound  learned_preconditioner/gain-toward-inverse-spectrum | 1/λ
            What the transformer solver learns is a preconditioner: its gain per eigenmode ends nearer to 1/lambda.
        # opening; why this distinction matters
        2-3, 28  identity  curve_kinds/kinds-kept-apart
            A curve is an exact population law, an exact solver identity or a local estimate, and agreement alone does
            not tell which.
            ! out_of_scope: A way of sorting the other statements; each of them has a row of its own.
        # plots
        5  bound  learned_preconditioner/worst-contraction-falls
            The largest Richardson contraction factor over the eigenmodes drops while the gain approaches 1/lambda.
        6  bound  learned_preconditioner/benefit-of-pretraining
            Pretraining pays on unseen tasks through faster convergence, beyond fitting the tasks it has stored.
        7  bound  phase_portrait/zigzag-against-straight
            On a stiff problem the plain update alternates in sign along the stiff axis; the preconditioned path to the
            solution has nearly no detour.
        8  bound  phase_portrait/learned-decoder-path
            In eigenvector coordinates a trained decoder takes the nearly straight path of a preconditioned update.
            ! reconstructed_setting: True of a matrix trained through one layer. Trained through two or more it
            need not come near the inverse, and its paths bend.
        9  bound  attention_modes/structure-grows
            Attention matrices written in eigenmodes are more structured after training than before it.
        10  null_model  attention_modes/diagnostic-only
            The heat map of attention modes proves nothing when taken alone.
            ! out_of_scope: A caution on how to read a picture; there is no quantity to measure.
        11  bound  attention_modes/query-key-alignment
            Query and key spectra aligned with the residual's directions allow a stronger correction per layer.
        # first kind
        12  identity  population_encoder/trajectory | G_s - G_* = (G_0 - G_*)(I - eta Sigma_z)^s
            The encoder's error matrix under population gradient descent is its start times a matrix power.
        13  population  population_encoder/final-risk-ratio | 1.0005116697
            Final risk of online stochastic gradient descent over the risk of the exact population curve.
            ! reconstructed_setting: No configuration is stated. With ours the mean over runs is 1.000507, and one run
            scatters about it by 3.4e-5.
        # second kind
        14  identity  richardson_identity/error-power | e_L = (I - P_theta H)^L e_0
            After L steps of a decoder with frozen preconditioner the error is (I - PH)^L times the first error.
        # second kind; summary list; why this distinction matters
        15, 24, 30  identity  richardson_identity/exact-not-approximate
            The Richardson form describes a frozen decoder exactly at every depth, as algebra and not as a fit.
        # second kind
        16  bound  richardson_identity/violation-rate | zero
            Share of tasks and depths at which the decoder's error exceeds the Richardson bound.
        # third kind
        17  local  ntk_curve/residual-curve | r_s^NTK = (I - eta J_0 J_0^T / m)^s r_0
            The residual under the tangent kernel of the start is a matrix power applied to the first residual.
        # third kind; why this distinction matters
        18, 31  local  ntk_curve/validity-near-start
            The linearised curve predicts training as long as the parameters have moved little, and only then.
        # third kind
        19  local  ntk_curve/relative-curve-error | 6.83e-4
            Relative error of the linearised loss curve for a learnable-kernel decoder on kernel ridge regression tasks.
            ! reconstructed_setting: At the learning rate that lands here the loss drops by 5 % over the run, and 99 %
            of its initial slope comes from the scalar skip alone: the run hardly tests the model.
        # finite-set recursion
        20  identity  adjoint_gradient/preconditioner-gradient
            The loss gradient with respect to P is a sum over tasks and layers of adjoint times residual.
            | grad_P L_N(P_theta) = sum_{i=1}^N sum_{l=0}^{L-1} lambda_{i,l+1} r_{i,l}^T
        21  identity  adjoint_gradient/parameter-update
            Pulling the gradient for P back through the parametrisation gives the exact update of the parameters.
            | theta_{s+1} = theta_s - eta DP_{theta_s}^* [grad_P L_N(P_{theta_s})]
        # finite-set recursion; reading the plots
        22  identity  adjoint_gradient/relative-error | 1.05e-15
            Relative error of the hand-written parameter gradient against automatic differentiation.
        # summary list; why this distinction matters
        23, 29  identity  population_encoder/closed-population-curve
            Because the encoder's objective is quadratic, its population risk curve has a closed form.
        # summary list; why this distinction matters; reading the plots
        25, 43, 47  local  ntk_curve/local-run-predicted
            For a short run of a nonlinear learnable-kernel decoder the linearised curve lies on the training loss.
        # summary list; why this distinction matters
        26, 33  identity  adjoint_gradient/all-layers
            For a finite set of tasks the recursion is the exact gradient at any depth of a nonlinear decoder.
        # summary list
        27  null_model  overlap_closure/no-scalar-closure-claimed
            No closed scalar law is claimed for the population training of the nonlinear decoder.
            ! out_of_scope: A disclaimer about what is claimed; there is nothing to measure.
        # why this distinction matters
        32  identity  adjoint_gradient/strongest-nonlinear-statement
            Among the results for nonlinear training the finite-set recursion is ranked highest.
            ! out_of_scope: A ranking of statements; no measurement settles it.
        34  identity  adjoint_gradient/terminal-adjoint | lambda_{i,L} = (z_{i,L} - z_i^*) / (N K)
            The adjoint starts at the last layer from the final error, divided by the number of scalar outputs.
        35  identity  adjoint_gradient/backward-recursion | lambda_{i,l} = (I - P_theta H_i)^T lambda_{i,l+1}
            Each layer backwards multiplies the adjoint by the transpose of I - PH.
        36  null_model  adjoint_gradient/no-scalar-law
            The exact finite-set recursion does not reduce to a law for a few scalars.
        37  null_model  overlap_closure/high-dimensional-state
            The state of training is all parameters or, just as well, many overlaps of P with tasks and residuals.
        38-39  null_model  overlap_closure/same-spectrum-different-risk
            Preconditioners that share all eigenvalues and singular values can differ in risk, through their alignment
            with H.
        40  null_model  overlap_closure/trace-p-h | Tr(PH)
            First mixed quantity that a closed theory has to follow: the overlap of P with H.
        41  null_model  overlap_closure/trace-p-h-p-h | Tr(PHPH)
            Second mixed quantity that a closed theory has to follow: the trace of PH squared.
        42  null_model  overlap_closure/trace-p-h-s-h-p | Tr(P H S H^T P^T)
            Third mixed quantity that a closed theory has to follow: PH around the covariance of the first error.
        44  null_model  overlap_closure/richer-order-parameters
            A population law for nonlinear training does not close on the spectrum of P; it needs more variables.
        # reading the plots
        45  population  population_encoder/held-out-risk-overlaps
            The encoder's held-out risk follows its exact population risk along the whole run.
        46  bound  richardson_identity/risk-below-certificate
            The measured risk of the decoder stays under the Richardson certificate at every depth.
        48  identity  adjoint_gradient/same-updates
            Training with automatic differentiation and training with the hand-written adjoint take equal steps.
        49  identity  adjoint_gradient/error-order | 10^{-15}
            Order of magnitude of the parameter gradient's relative error, stated a second time.
        50  identity  adjoint_gradient/rounding-level
            Hand-written and automatic gradients differ by no more than rounding.
        # next theory step
        51-52  limit  overlap_closure/joint-law-plan
            The announced next step is a closed law for the joint state of P, task matrices and residual covariance.
            ! out_of_scope: A plan for later work; it states no result.
        53  limit  overlap_closure/closed-law-predicts-globally
            Where the joint law closes, the training curve follows from it at all times and not only near the start.
        # last paragraph
        54  identity  curve_kinds/layered-summary
            The result is a stack of layers: exact gradients, exact solver algebra, local curves and logged overlaps.
            ! out_of_scope: A summary; every layer that it names has rows of its own.
        """,
        measured={
            "population_encoder/trajectory": TRAJECTORY,
            "population_encoder/closed-population-curve": replace(TRAJECTORY, observable="risk"),
            "population_encoder/final-risk-ratio": ONLINE,
            "population_encoder/held-out-risk-overlaps": replace(
                ONLINE, observable="held_out_risk", reading=Discrepancy(), rule=None
            ),
            "richardson_identity/error-power": RICHARDSON,
            "richardson_identity/exact-not-approximate": RICHARDSON,
            "richardson_identity/violation-rate": replace(CERTIFICATE, rule=NoViolations()),
            "richardson_identity/risk-below-certificate": CERTIFICATE,
            "adjoint_gradient/parameter-update": replace(RECURSION, observable="displacement"),
            "adjoint_gradient/same-updates": RECURSION,
            "adjoint_gradient/preconditioner-gradient": ADJOINT,
            "adjoint_gradient/relative-error": Measure(observable="gradient", reading=Discrepancy(), rule=AtMost()),
            "ntk_curve/residual-curve": LINEARISED,
            "ntk_curve/validity-near-start": LINEARISED,
            "ntk_curve/relative-curve-error": Measure(
                observable="loss", reading=CurveError(1.1e-3), rule=Within(relative=0.5)
            ),
            "ntk_curve/local-run-predicted": LINEARISED,
            "overlap_closure/same-spectrum-different-risk": SAME_SPECTRUM,
            "overlap_closure/richer-order-parameters": SAME_SPECTRUM,
            "adjoint_gradient/no-scalar-law": replace(SAME_SPECTRUM, theory="overlap_closure"),
            "overlap_closure/high-dimensional-state": MIXED_TRACE,
            "overlap_closure/trace-p-h": MIXED_TRACE,
            "overlap_closure/trace-p-h-p-h": replace(MIXED_TRACE, observable="trace_of_square"),
            "overlap_closure/trace-p-h-s-h-p": replace(MIXED_TRACE, observable="residual_energy"),
            "learned_preconditioner/gain-toward-inverse-spectrum": GAIN,
            "learned_preconditioner/worst-contraction-falls": replace(GAIN, observable="contraction"),
            "learned_preconditioner/benefit-of-pretraining": replace(GAIN, observable="unseen_risk"),
            "phase_portrait/zigzag-against-straight": PORTRAIT,
            "phase_portrait/learned-decoder-path": replace(PORTRAIT, observable="learned", reading=Discrepancy()),
            "attention_modes/structure-grows": Measure(observable="off_diagonal", reading=Discrepancy()),
            "attention_modes/query-key-alignment": Measure(observable="correction", reading=Discrepancy()),
            "overlap_closure/closed-law-predicts-globally": Measure(
                theory="wishart_training_curve", observable="loss", reading=Discrepancy()
            ),
            "adjoint_gradient/all-layers": ADJOINT,
            "adjoint_gradient/terminal-adjoint": ADJOINT,
            "adjoint_gradient/backward-recursion": ADJOINT,
            "adjoint_gradient/error-order": ADJOINT,
            "adjoint_gradient/rounding-level": ADJOINT,
        },
    ),
)
