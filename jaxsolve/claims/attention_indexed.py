"""Claims of document 004: losses of quadratic forms of attention matrices, and how online training moves them."""

from ._claim import Claim, Document

DOCUMENT = Document(
    slug="attention-indexed",
    number="004",
    title="High-dimensional training of models indexed by attention matrices",
    bibtex="""@misc{attention-indexed,
  title = {High-dimensional training of models indexed by attention matrices},
  note = {source document 004}
}""",
)

CLAIMS: tuple[Claim, ...] = (
    *DOCUMENT.rows(
        """
        # abstract and §1
        1, 8  limit  tied_recovery/sample-scale | Θ(d^2 log d)
            Tied weights break the symmetry unaided and find the teacher weakly with order d^2 log d samples, given a
            mild assumption.
        2  transition  implicit_bias/parametrisation
            How the attention matrix is factorised decides by itself whether training leaves the uninformative state.
        # abstract and §1; §5
        3, 54  bound  scope/tied-and-untied-only
            Only single tied or untied factorisations under plain gradient descent are analysed; deep transformers,
            other optimizers and later recovery stages are not.
            ! out_of_scope: A remark on what is left to later work; there is nothing to measure.
        # abstract and §1; §2 (Theorem 1)
        4, 18, 20  limit  theorem_1/finite-loss-description
            As d grows, the population loss becomes a function of finitely many traces of first and second order.
        # abstract and §1; §3.1
        5, 27  limit  theorem_2/infinite-hierarchy
            Although the potential needs few traces, tied training couples them to joint moments of every degree.
        # abstract and §1; §3.1 (Corollary 2); §5
        6, 31, 52  local  corollary_2_truncation/exponential-accuracy
            A system that keeps moments up to degree M alone has an error that falls exponentially in M.
        # abstract and §1
        7  bound  direct_s/trapped | S∈R^{d×d}
            Training the attention matrix itself may never leave the state without teacher overlap.
        9  limit  untied_fast_slow/two-clocks
            With untied weights the mean of the scores settles first; overlaps move a factor d more slowly.
        10  transition  untied_recovery/recovery-after-symmetry-breaking | Θ(d^2 log d)
            Untied weights recover weakly with order d^2 log d samples if the fast phase ends off the symmetric state.
        11-12  limit  setting/extensive-rank
            The rank may grow in proportion to the embedding dimension, a case that was treated so far at rest only.
            ! out_of_scope: It places the work among others; there is nothing to measure.
        13  transition  direct_s/direct-against-factorised
            From a start without information the matrix itself stays put, whereas both factorisations can get away.
        # abstract and §1; §3.1 (Theorem 2); §D.1.6
        14, 29, 84  limit  theorem_2/deterministic-limit
            For tied weights the moments along online training tend, evenly on any finite time span, to the one solution
            of a deterministic equation for all moments.
        # abstract and §1; §4
        15, 41  bound  untied_recovery/no-recovery-with-symmetry
            If the fast phase leaves the symmetry intact, untied weights stay uninformed on this sample scale.
        # §2 (Theorem 1)
        16  identity  setting/model-class
            Attention networks of several layers and heads, without other blocks, are functions of quadratic token
            forms.
        17  limit  setting/teacher-weights
            Inputs are Gaussian; the weights of the teacher may have any law.
        19  limit  setting/assumptions
            Sequence length and number of matrices stay fixed while d grows, and the loss is regular.
            ! out_of_scope: It lists assumptions; the statement that rests on them has a row of its own.
        21  law  theorem_1/gaussian-limit
            The quadratic forms of tokens become jointly Gaussian as d grows.
        # §2 (Corollary 1)
        22  limit  corollary_1/equal-optima
            If every feasible set of traces is realised by matrices, minimising over traces or over matrices agrees in
            the limit.
        23  limit  corollary_1/feasible-set
            The best limiting loss is the minimum of the potential over a feasible set of finitely many traces.
        # §2
        24  null_model  closure/landscape-against-dynamics
            Few variables describe the loss, yet the same few do not in general describe its training.
        25  limit  direct_s/closed-variables
            Training the matrix itself closes on finitely many traces; either factorisation brings in further moments.
        # §3
        26  identity  tied_recovery/traceless-overlap
            Recovery is read off the overlap of the traceless parts, so that a shared multiple of the identity counts
            for nothing.
        # §3.1 (Theorem 2)
        28  null_model  theorem_2/no-finite-closure
            No fixed finite list of moments closes the equations of tied training in general.
        # §3.1 (Theorem 2); §D.3
        30, 95  null_model  solvable_example/no-finite-equation
            A solvable quadratic case cannot be written as any fixed finite set of equations whose state depends
            continuously on the start.
        # §3.1 (Figure 1)
        32  local  figure_1/truncations-against-training
            For softmax attention and squared error, truncations of growing degree come nearer to online training.
        33  identity  figure_1/sequence-length | 2
            Number of tokens in the softmax experiment.
            ! out_of_scope: A setting of the figure; it is used, not measured.
        # §3.1 (Corollary 2)
        34  bound  corollary_2_truncation/uniform-in-time
            With the regularity assumption one bound on the truncation error serves all times.
        35  local  corollary_2_truncation/time-dependent-constants
            Dropping the regularity assumption costs no more than constants that depend on the horizon T.
            ! predicted disagrees: The hierarchy cut to zero is a Taylor expansion of finite radius: in the linear case
            with one token, d = 100 and spectral norms near 4, its error at t = 0.05 (critical time 0.035) grows from
            0.69 at M = 1 to 32 at M = 12.
        # §3.2 (Corollary 3)
        36  limit  corollary_3_tied_recovery/nonzero-velocity | Θ(d^2 log d)
            Tied weights recover with order d^2 log d samples whenever the overlap has a nonzero velocity at the start.
        37  limit  corollary_3_tied_recovery/cross-gradient
            The first velocity of the overlap is proportional to the loss derivative across student and teacher.
        # §3.2 (Figure 2)
        38  transition  figure_2/higher-order-activations
            For activations without a linear part the tied student gains overlap while the direct one keeps none, at the
            same number of samples.
        39  transition  figure_2/linear-activation
            For the linear activation tied and direct training both gain overlap.
        # §4
        40  limit  untied_fast_slow/fast-phase-moves-mean-only
            The fast phase brings no teacher overlap of order one; it moves the mean and so opens the way for the slow
            phase.
        # §4.1 (Theorem 3)
        42  limit  theorem_3/two-timescales
            Means alone move at order one on the fast clock; on the slow clock moments move and the means track them.
        43  limit  theorem_3/effective-bias
            The slow hierarchy of untied moments contains a bias term that the fast phase leaves behind.
        # §4.2 (Corollary 4)
        44  limit  corollary_4_untied_recovery/sample-scale | Θ(d^2 log d)
            A cross-gradient that is nonzero after the fast phase gives recovery with order d^2 log d samples.
        45  bound  corollary_4_untied_recovery/stall
            Cross-gradients that are zero on every uninformative state rule out recovery with that many samples.
        46  bound  corollary_4_untied_recovery/conditions
            The alternative assumes an uninformed start and the limiting equations of untied training.
            ! out_of_scope: It lists assumptions; the statement that rests on them has a row of its own.
        47  limit  untied_recovery/samples-over-learning-rate | Θ(d/α_d)
            With first-order signal on both the student and the teacher side, order d over alpha_d samples suffice,
            alpha_d being the learning rate.
        48  transition  untied_recovery/fast-phase-creates-signal | E[σ′(Z₁)]
            A student-side signal that is zero at the start can become nonzero through the shift of the mean.
        49  bound  untied_recovery/stall
            A student that the fast phase leaves in a symmetric state makes no progress.
        50  transition  figure_3/vanishing-teacher-signal | E_{z₂²}[σ′*(Z₂)] = 0
            Without first-order signal in the teacher recovery needs far more samples.
        51  transition  figure_3/information-exponent-open
            Whether the recovery time follows the activation's information exponent is suggested and left open.
            ! out_of_scope: A remark on what is left to later work; there is nothing to measure.
        # §5
        53  transition  theorem_3/selected-state
            Feature learning of untied weights sets out from the state in which the fast phase ends.
        55  limit  scope/finite-dimension-corrections
            Following training for times that grow with d calls for corrections of finite dimension.
            ! out_of_scope: A remark on what is left to later work; there is nothing to measure.
        # §5 (Figure 3)
        56  transition  figure_3/delayed-recovery
            Untied students with activations of higher order recover later.
        # §B.1
        57  identity  examples/multi-layer-multi-head
            A stack of attention layers with several heads is a finite composition of quadratic forms of its input.
        58  identity  examples/multi-layer-assumptions
            The construction for stacked attention needs a bounded continuous softmax and no law of the teacher.
            ! out_of_scope: It lists assumptions; the statement that rests on them has a row of its own.
        # §B.2
        59  identity  examples/next-token
            Predicting the next token with one attention layer is a loss of the class.
        # §B.3
        60-61  identity  examples/token-pair-labels
            Labels that depend on pairs of tokens, joined at random where their meanings match, are in the class.
        # §B.4
        62  identity  examples/two-step-retrieval
            A two-head student that retrieves two hidden tokens and lets them interact is in the class.
        # §B.5
        63  identity  examples/matrix-denoising
            Denoising a matrix of proportional rank is the case of one token and one matrix.
        # §C.1
        64  population  theorem_1/mean | E[G_ijk] = C_ijµ_ijk
            Mean of the quadratic forms: token covariance times the rescaled trace.
        65  population  theorem_1/covariance | C_ii′C_jj′Ω_ijk,i′j′k′ + C_ij′C_ji′Ψ_ijk,i′j′k′
            Covariance of the quadratic forms: two products of token covariances, weighted with the two second traces.
        66  limit  theorem_1/higher-cumulants
            Every joint cumulant from the third on tends to zero with growing d.
        67  limit  theorem_1/loss-expectation-limit
            The mean loss at finite d tends to the mean loss under the Gaussian limit.
        # §C.2
        68  limit  theorem_1_centered/uncentred-mean | S = WW^T
            For tied weights the mean of the quadratic forms without centring can grow without bound in d.
        69  population  theorem_1_centered/centred-moments
            Centring sets the mean to zero at every d and leaves covariance and higher cumulants as they were.
        70  law  theorem_1_centered/gaussian-limit
            The centred quadratic forms tend to a Gaussian law of mean zero and the stated covariance.
        # §C.3; §D.1.1
        71, 76-77  limit  theorem_2_proof/local-solution
            For a short time the equations for all moments have one solution, in a growing scale of sequence spaces.
            ! out_of_scope: A compactness or uniqueness statement in a space of infinite sequences; no run at finite
            size settles it.
        # §C.3
        72  limit  corollary_1/limit-of-infimum | lim_d→∞ inf_S_K F_d(S_K) = inf_Q∈Q R(Q)
            The smallest loss at finite d tends to the smallest value of the potential on the feasible set.
        73  bound  corollary_1/condition-on-minimisers
            Minimisers are assumed to keep their spectral norm within a fixed multiple of the rescaled Frobenius norm.
            ! out_of_scope: It lists assumptions; the statement that rests on them has a row of its own.
        # §D.1.1
        74  identity  theorem_2_proof/projection
            Projecting second moments onto the positive semidefinite cone extends the field and changes nothing inside.
        75  transition  theorem_2_proof/truncation-leaves-cone
            A truncated system can reach second moments that belong to no matrices.
        # §D.1.2 (Lemma 3)
        78  bound  theorem_2_proof/spectral-bound | C* > C0
            Up to a fixed time the spectral norm of tied weights stays under a constant that does not grow with d.
        79  limit  theorem_2_proof/stopping-time
            The stopping time used for tied weights lies past the horizon once d is large.
            ! out_of_scope: A device of the proof; no run at finite size settles it.
        # §D.1.3
        80  limit  theorem_2_proof/moment-expansion
            Moments along tied training obey the integral equation of their drift, with an error that vanishes in d.
        # §D.1.4
        81  limit  theorem_2_proof/tightness
            The laws of the moment processes of tied training are relatively compact.
            ! out_of_scope: A compactness or uniqueness statement in a space of infinite sequences; no run at finite
            size settles it.
        # §D.1.5
        82  limit  theorem_2_proof/field-converges
            The drift of the moments at finite d tends to the limiting drift.
        83  limit  theorem_2_proof/global-solution
            The equations for all tied moments have one admissible solution, and it is deterministic if the start is.
            ! out_of_scope: A compactness or uniqueness statement in a space of infinite sequences; no run at finite
            size settles it.
        # §D.2
        85-86  identity  corollary_2_truncation/invariant-subspace
            The truncated system is the full one started with all moments above degree M at zero, where they remain.
        87  local  corollary_2_truncation/stability
            Truncated and full trajectories stay close under the assumed bounds.
        88, 90  bound  corollary_2_truncation/existence
            A truncation of large enough degree does not blow up before the horizon.
        89  bound  corollary_2_truncation/moment-bound | ∥q̄(t)∥F ≤ KR^2
            Up to the horizon one bound on the truncated moments serves all large degrees.
            ! predicted disagrees: Past the critical time truncated moments grow with the degree: in the linear case
            with one token, d = 100 and spectral norms near 4, their error at t = 0.05 is 0.77, 2.1, 8.6 and 32 at M =
            2, 4, 8 and 12.
        # §D.3
        91  local  solvable_example/taylor-terms
            Degrees two and three set the moments in motion and add curvature: they are Taylor terms of the matrix flow.
        92  identity  solvable_example/degree-one-static
            Truncated at degree one, the first moment never moves.
        93  identity  solvable_example/linear-terms
            Truncated moments and traces of the expanded matrix flow have the same term linear in time.
        94  identity  solvable_example/eigenvalue-flow | S2 = cI
            Under a teacher proportional to the identity each student eigenvalue has its own scalar equation, and the
            first moment over time reveals them all.
        # §D.3 (Figure 4)
        96  local  figure_4/truncations-against-training
            For the linear activation and squared error, truncations of growing degree come nearer to online training.
        97  identity  figure_4/sequence-length | 1
            Number of tokens in the linear experiment.
            ! out_of_scope: A setting of the figure; it is used, not measured.
        98  identity  figure_4/dimension | 400
            Embedding dimension in the linear experiment.
            ! out_of_scope: A setting of the figure; it is used, not measured.
        99  identity  figure_4/learning-rate | 0.01
            Learning rate in the linear experiment.
            ! out_of_scope: A setting of the figure; it is used, not measured.
        100  identity  figure_4/batch-size | 512
            Samples per step in the linear experiment.
            ! out_of_scope: A setting of the figure; it is used, not measured.
        101  identity  figure_4/weight-decay
            The linear experiment runs with zero weight decay.
            ! out_of_scope: A setting of the figure; it is used, not measured.
        # §D.4
        102  bound  corollary_3_tied_recovery/sign-of-velocity
            For a time that does not shrink with d, the overlap of tied weights moves away from zero in one direction.
        # §D.5
        103, 105  bound  strong_recovery/gradient-dominance
            The rate for tied weights assumes that the squared gradient dominates the excess loss along the path.
            ! out_of_scope: It lists assumptions; the statement that rests on them has a row of its own.
        104  bound  strong_recovery/tied-rate | O(d/ϵ)
            Once recovery has begun, the samples still needed for excess loss epsilon grow no faster than d over
            epsilon.
        106  limit  strong_recovery/transfer-to-finite-dimension
            What holds in finite time on the limiting path carries over to the regularised loss at finite d.
        107  identity  strong_recovery/global-minimum | q22 = 1, Φ* = 0, q11 = q12 = 1
            For a teacher of unit second moment the loss is zero exactly where the student equals the teacher.
        108  bound  strong_recovery/relevant-directions | S1 − S2
            Gradient dominance is needed along the difference of student and teacher, and may fail elsewhere.
        # §E (Theorem 4); §E.1
        109, 116  limit  theorem_4_direct_s/deterministic-limit
            Traces along direct training tend to a deterministic path, evenly over the time span, at small learning
            rate.
        110, 113  limit  theorem_4_direct_s/closed-variables | (t, Ψ, Ω)
            Three families of first and second traces form a closed system under direct training.
        # §E (Corollary 7); §E.2
        111, 122  bound  corollary_7_direct_stall/no-recovery | O(d^2 log d)
            If cross-gradients are zero on all uninformative states, direct training gains no overlap from any fixed
            multiple of d^2 log d samples.
        # §E (Corollary 7)
        112  transition  corollary_7_direct_stall/contrast-with-tied
            At the same number of samples tied weights can leave the state that holds direct training.
        # §E.1
        114  bound  theorem_4_direct_s/spectral-bound
            Directly trained matrices keep a bounded spectral norm up to any fixed time.
        115  limit  theorem_4_direct_s/moment-expansion
            One direct step changes the traces by the finite field; noise and remainder vanish with d.
        # §E.1; §E.1.3
        117-121  limit  theorem_4_direct_s/existence-and-uniqueness
            A Lipschitz extension of the field and a Gronwall estimate give one limiting path, inside the allowed
            region.
            ! out_of_scope: A device of the proof; no run at finite size settles it.
        # §F.1.1
        123  limit  theorem_1_strong/error-scaling
            The distance between the quadratic forms and their Gaussian limit has an explicit scale in d.
        # §F.1.2
        124  limit  theorem_3_proof/local-solution
            For a short time the extended slow equations have one solution, in growing neighbourhoods.
            ! out_of_scope: A compactness or uniqueness statement in a space of infinite sequences; no run at finite
            size settles it.
        # §F.1.3
        125, 132  bound  theorem_3_proof/spectral-bound
            Untied weights keep a bounded spectral norm through the whole horizon, with probability that tends to one.
        # §F.1.3 (Lemma 13)
        126, 131  bound  theorem_3_proof/parts-of-spectral-bound
            The bound is put together from traces bounded below, a Stein expansion, single-step estimates and the first
            interval.
            ! out_of_scope: A device of the proof; no run at finite size settles it.
        # §F.1.3 (Lemma 15)
        127  bound  theorem_3_proof/excess-loss-decay
            In the fast phase the excess of the loss stays under an exponential with positive rate.
        128  bound  theorem_3_proof/decay-rate | cloc = c1/2
            The rate of that exponential is half of another constant of the proof.
            ! out_of_scope: The constant on the right is not given in the document, so the rate has no value to be
            measured.
        # §F.1.3 (Lemma 16)
        129  bound  theorem_3_proof/mean-gradient-bound
            While the slow phase lasts, the gradients with respect to the means obey a sharper bound.
        # §F.1.3
        130  limit  theorem_3_proof/blockwise-control
            Control over blocks of steps shows that the state does not leave the region where the estimates hold.
            ! out_of_scope: A device of the proof; no run at finite size settles it.
        # §F.1.3 step 6
        133  identity  theorem_3_proof/horizon | NT = ⌊T d^αd⌋
            Number of steps up to slow time T.
            ! out_of_scope: A definition; it is used, not measured.
        # §F.1.4
        134  limit  theorem_3/fast-dynamics
            On the fast clock the means tend to their deterministic path while all slow variables rest.
        135  bound  theorem_3/dissipation
            The potential never rises along the fast path of the means.
        # §F.1.5
        136-137  limit  theorem_3_proof/word-expansion
            One step changes each untied moment by drift and centred noise; terms with several increments vanish.
        138-139  limit  theorem_3_proof/integral-equation
            Untied moments obey the integral equation of the effective field, with an error that vanishes in d.
        # §F.1.6
        140  limit  theorem_3_proof/tightness
            The laws of the stopped untied moments are relatively compact, and replacing them by the auxiliary ones is
            harmless.
            ! out_of_scope: A compactness or uniqueness statement in a space of infinite sequences; no run at finite
            size settles it.
        # §F.1.6 step 2
        141  limit  theorem_3_proof/field-converges
            The effective field at finite d tends to its limit along trained states.
        142-143  limit  theorem_3_proof/unique-solution
            The slow equations have one admissible solution, and every limit of the moments is that one.
            ! out_of_scope: A compactness or uniqueness statement in a space of infinite sequences; no run at finite
            size settles it.
        144  limit  theorem_3_proof/convergence-in-probability
            Untied moments tend to the solution of the slow equations, evenly over the time span.
        145  limit  theorem_3_proof/stopping-time
            For large d the stopping time of the slow phase plays no role.
            ! out_of_scope: A device of the proof; no run at finite size settles it.
        # §F.1.7
        146  limit  theorem_3/slow-dynamics | [0,T2]
            Moments along untied training tend to the one deterministic slow path, up to its horizon.
        # §F.2
        147  local  untied_truncation/existence-and-approximation
            Up to the horizon a truncation of the untied hierarchy exists and comes as near to it as wanted.
        148  local  untied_truncation/exponential-error
            For untied weights, too, the error falls exponentially in the degree of truncation.
        # §F.3
        149  identity  corollary_4_untied_recovery/free-manifold-invariant
            A student that is free of the teacher remains so under the slow flow: every mixed moment and overlap is
            zero.
        # §F.4
        150  bound  strong_recovery/untied-rate | O(d/ϵ)
            The same bound on the further samples holds for untied weights once strong recovery has begun.
        # §F.5 (Lemma 10)
        151  limit  theorem_1_strong/gaussian-interpolation
            The error scale is derived by moving step by step from the forms to a Gaussian of equal covariance.
            ! out_of_scope: A device of the proof; no run at finite size settles it.
        """
    ),
)
