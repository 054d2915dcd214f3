"""Claims of nineteen abstracts on training dynamics.

Long because it is one document, row by row in its order, abstract after abstract.
"""

from ._claim import Claim, Document

DOCUMENT = Document(
    slug="dynamics-abstracts",
    number="003",
    title="Nineteen abstracts on training dynamics",
    bibtex="""@misc{dynamics-abstracts,
  title = {Nineteen abstracts on training dynamics},
  note = {source document 003},
}""",
)

CLAIMS: tuple[Claim, ...] = (
    *DOCUMENT.rows(
        """
        # abstract: attention-indexed models
        1  limit  attention_indexed/finite-loss-description
            As the dimension grows, the population loss depends on the weights through finitely many traces only.
        2  limit  attention_indexed/infinite-hierarchy
            The flow followed by online SGD couples matrix moments of every degree, each to higher ones.
        3  limit  attention_indexed/truncation-short-time
            Cutting the moment hierarchy at a degree leaves an error that falls exponentially in that degree, up to a
            critical time.
        3  limit  attention_indexed/truncation-any-time
            Without weight decay the truncation error falls exponentially with the degree at every time.
            ! predicted disagrees: Setting the longer moments to zero is a Taylor expansion in time: at dimension 100,
            past the critical time of about 0.035, the error at time 0.05 grows from 0.69 at degree 1 to 32 at degree
            12.
        4  transition  attention_indexed/parametrisation-bias
            At the same loss and time, the way in which the attention matrix is parametrised decides whether the teacher
            is found.
        5  transition  attention_indexed/direct-trapped | S∈R^{d×d}
            Training the attention matrix itself leaves the overlap with the teacher at zero when the first-order signal
            vanishes.
        6  population  attention_indexed/tied-symmetry-breaking | S=WW^T
            With tied factors the overlap with the teacher has a nonzero initial velocity although the start is random.
        7  limit  attention_indexed/tied-sample-scale | Θ(d^2 log d)
            Samples until a tied student overlaps with its teacher grow like the squared dimension, up to a logarithm.
        8  limit  attention_indexed/untied-two-timescales | S=UV^T
            With untied factors the mean of the attention score relaxes before the overlaps move, and the separation
            sharpens with dimension.
        9  transition  attention_indexed/untied-recovery-condition | Θ(d^2 log d)
            An untied student finds the teacher on the slow scale when the mean chosen by the fast phase is not the
            symmetric one, and stalls otherwise.
        # abstract: quantum signal processing
        10  null_model  quantum_signal_processing/frozen-kernel
            Training with the kernel held at its initial value misses the change of geometry that the full flow shows.
        11-12  population  quantum_signal_processing/kernel-mean
            The mean over uniform phases of the quantum tangent kernel has a closed form at every depth.
        12  population  quantum_signal_processing/kernel-variance
            The variance over uniform phases of the quantum tangent kernel is computed exactly at every depth.
        13  population  quantum_signal_processing/kernel-geometry
            The mean kernel between two inputs is a function of their signal angles, not a constant.
        14  limit  quantum_signal_processing/diagonal-fluctuations
            The relative variance of the kernel diagonal tends to a positive constant with depth, in the Haar limit too.
        15-16  limit  quantum_signal_processing/scalar-flow-sparse-data
            For few data the true nonlinear gradient flow approaches one solvable scalar equation per datum as depth
            grows.
        16  limit  quantum_signal_processing/convergence-time
            The time to reach a given error in the scalar flow follows from a closed primitive.
        17  bound  quantum_signal_processing/speed-limit
            The angular speed of each output never exceeds a bound set by depth and residuals, whatever the data.
        18  null_model  quantum_signal_processing/dense-data
            With many nearby inputs the outputs leave both the scalar and the constant-kernel prediction.
        # abstract: Muon response and memory
        19  bound  bi_maxwell/maximal-dissipation
            Among updates of spectral norm at most one, the polar factor of the gradient lowers the loss fastest to
            first order.
        20  identity  bi_maxwell/momentum-as-stress
            Momentum averaging is the exact discretisation of a relaxing stress driven by the gradient.
        21  identity  bi_maxwell/two-timescale-kernel
            The impulse response of the two-element memory is the sum of a short and a long exponential.
        22  population  bi_maxwell/gradient-direction-slows
            Successive gradients turn less late in training than at its start.
            ! qualitative
        23  population  bi_maxwell/memory-grows
            The averaging time that best predicts the next gradient increases as training goes on.
            ! qualitative
            ! predicted disagrees: On a small regression network the trend depends on the regime: at a constant rate of
            0.004 the best memory falls from 24 steps to 1 in 8 of 8 seeds; with a decayed rate it rises overall in only
            4 of 8.
        24  population  bi_maxwell/probe-eight-trajectories | 8
            A probe that only reads gradients finds growing memory in all eight runs.
            ! qualitative
            ! predicted disagrees: Our probe recovers the Kalman memory of synthetic signals, yet on a small network the
            rank correlation with time is negative in 8 of 8 seeds at a constant rate and positive in 4 of 8 with decay.
        25  identity  bi_maxwell/kernel-alone-replaced
            With equal timescales, or no weight on the slow one, the two-timescale optimizer is Muon step for step.
        26  population  bi_maxwell/fewer-steps
            Two timescales reach a target loss in fewer steps than the best single one.
            ! qualitative
            ! predicted disagrees: On a small network no gain was found: after 600 steps the best two-timescale loss is
            0.00614 and the best single-timescale loss 0.00604, a difference within seed noise.
        # abstract: commutator framework
        27  identity  commutators/three-families
            Incompatibility is measured by gate-covariance, sensitivity-covariance and AGOP-NFM commutators, which all
            vanish in a balanced deep linear network.
        28  identity  commutators/four-source-identity
            In each layer the commutator of sensitivity and weight covariance is exactly the sum of transport,
            imbalance, fluctuation and gate terms.
        29  identity  commutators/agop-nfm-transport
            Conjugating the layer's inner commutator by its weights gives the AGOP-NFM one, so singular values weight
            it.
        30  null_model  commutators/alignment-underdetermines
            Layers with equally small feature-side commutators can have inner commutators of very different size.
        31  bound  commutators/buffered-energies
            Leaving out a buffer of eigenvalues bounds the mixing of two covariance subspaces by their local commutator
            energy.
        32  bound  commutators/spectral-gap
            The commutator block between two spectral subspaces is at least the gap times the mixing of the sensitivity.
        32  identity  commutators/projector-evolution
            The derivative of a covariance projector is its first-order perturbation formula, of norm bounded by the
            inverse gap.
        32  bound  commutators/stabilization
            Once the covariance settles, the subspaces stay within a bound given by the remaining motion.
        33  bound  commutators/conditional-decay
            Where an error bound or a damping term holds, commutator energy decays at least at the stated rate.
        34  null_model  commutators/criteria-not-from-flow
            Gradient flow by itself does not satisfy the conditions that force commutators to decay.
        35, 38  null_model  commutators/no-collapse-from-risk
            A falling training loss does not drive the commutators to zero, so alignment is not a general outcome.
        36  identity  commutators/factorization
            In solvable examples the commutator is a product of a spectral and an activation part.
        36  population  commutators/transient-growth
            Commutators can grow for a while during training before they shrink.
        36-37  population  commutators/negative-interaction
            Sources cancel through a negative product of transport and imbalance, at several depths and widths.
        # abstract: neural quadratic forms
        39  transition  neural_quadratic_forms/plateaus-and-drops
            From small weights the loss stays nearly constant for long stretches that end in sudden falls.
        40  identity  neural_quadratic_forms/permutation-symmetry
            Exchanging the units of a layer does not change what the network computes.
        41  limit  neural_quadratic_forms/leading-form | Tr[WW^T A(x)]
            Near zero weights the network equals a quadratic form in them, with a remainder of higher order.
        42  identity  neural_quadratic_forms/structure-matrix | A(x)
            Half the Hessian of one unit at the origin is the matrix that stands for the whole architecture.
        43  identity  neural_quadratic_forms/architecture-perceptron
            The closed structure matrix of a perceptron is its Hessian at zero.
        43  identity  neural_quadratic_forms/architecture-attention
            The closed structure matrix of softmax attention is its Hessian at zero.
        43  identity  neural_quadratic_forms/architecture-mixture-of-experts
            The closed structure matrix of a gated mixture whose units have no gradient at zero is its Hessian there.
        43  identity  neural_quadratic_forms/architecture-convolution
            The closed structure matrix of a convolution is its Hessian at zero.
        44  identity  neural_quadratic_forms/closure | M=WW^T
            Gradient descent on the quadratic form is an equation for the Gram matrix of the units alone.
        45  identity  neural_quadratic_forms/lotka-volterra
            With commuting data matrices the mode strengths obey a Lotka-Volterra system.
        45  transition  neural_quadratic_forms/switch-on-order
            The modes become active one by one, in the order that the event rule gives.
        46  limit  neural_quadratic_forms/switch-on-spacing
            Switch-on times move apart in proportion to the logarithm of the inverse initial scale.
        47  limit  neural_quadratic_forms/singular-limit
            On the logarithmic clock the smooth flow tends to a sequence of jumps as the start shrinks.
        48  limit  neural_quadratic_forms/power-law
            With many modes the loss is a power of time whose exponent follows from the spectra of data and target.
        49  identity  neural_quadratic_forms/training-methods
            The closed equations also hold for gradient descent with momentum.
        49  local  neural_quadratic_forms/real-networks
            Trained perceptrons, attention, mixtures and convolutions follow the quadratic form while weights are small.
        # abstract: random low-dimensional reparameterization
        50  transition  raman/transition-location
            A random slice starts to meet the low-loss set when its dimension passes the polar cone's statistical one.
        51  population  raman/master-formula
            The mean loss left in a random slice is a closed function of curvatures and of the displacement along each.
        52  population  raman/isotropic-predictor
            When the displacement has no preferred direction, curvatures alone predict the loss left in a slice.
        53  identity  raman/radius-only-bound
            Dropping the directions from the formula gives the known Gaussian-width dimension of a quadratic well.
        53  bound  raman/radius-only-conservative
            The dimension predicted from the radius alone is never below the one that knows the directions.
        54  population  raman/hadamard-map
            Slices made with a randomised Hadamard map leave the loss that the formula for Gaussian ones predicts.
        54  identity  raman/seeded-gaussian-map
            A Gaussian map regenerated from its seed, and its transpose, equal the stored matrix.
        55  bound  raman/map-storage | O(dP)
            Applying either map needs far less memory than a stored dense map.
        56  identity  raman/optimizer-state | O(d)
            The optimizer keeps a state as large as the latent vector, not as the network.
        57  population  raman/selection-without-sweeps
            Curvature-vector products alone give the latent dimension for a target loss, with no scan over dimensions.
        58  transition  raman/predictor-tracks-transition
            Measured crossing dimensions match the prediction that knows the displacement, for quadratics and networks.
        58  null_model  raman/isotropic-predictor-fails
            Ignoring the direction of the displacement misplaces the crossing when that direction is special.
        59  transition  raman/end-to-end-transition
            Networks trained in a random slice pass sharply from failing to succeeding, at a size set by the protocol.
            ! qualitative
        # abstract: rank collapse in post-norm decoders
        60  population  rank_collapse/similarity-growth
            At initialization causal attention averages over the prefix and raises the cosine between tokens with depth.
        61  population  rank_collapse/swiglu-damping
            The gated feed-forward branch slows the rise of token similarity without stopping it.
        62  population  rank_collapse/contractive-backward
            The RMSNorm derivative shrinks gradients by the size of the stream that enters the norm.
        63  population  rank_collapse/geometric-gradient-decay
            Gradient norms shrink by a constant factor per block towards the input.
        64  identity  rank_collapse/frequency-predictor
            A network with identical token states does best by predicting token frequencies, at a loss equal to their
            entropy.
        65  identity  rank_collapse/vanishing-gradients
            At the frequency predictor the weight gradients of collapsed layers are zero.
        66  population  rank_collapse/deep-similarity-growth | 48-layer
            Deep decoders show the predicted rise of similarity before training.
            ! qualitative
        66  population  rank_collapse/deep-gradient-contraction | 48-layer
            Deep decoders that collapsed in training show the predicted shrinking of gradients.
            ! qualitative
        67  population  rank_collapse/collapsed-loss
            Runs that collapse keep a loss close to the entropy of token frequencies.
            ! qualitative
        # abstract: hidden boundary motion
        68-69  identity  boundary_motion/weight-bias-overlap | ΔWμ
            For inputs of nonzero mean a weight update shifts all outputs of the layer just as a bias update would.
        70  identity  boundary_motion/shape-boundary-split
            Every update is a centred part plus a common shift, and the two are orthogonal over the samples.
        71  population  boundary_motion/setting
            The figures come from a small Transformer on film reviews.
            ! out_of_scope: It describes the experiment of the source and claims nothing by itself.
        72  population  boundary_motion/bias-like-gradient | 0.664
            Median, over affine layers and checkpoints, of the bias-like part's norm over that of the weight gradient.
            ! qualitative
        73  population  boundary_motion/motion-over-bias-update | 134.7
            Median, over layers and checkpoints, of the norm of the weight-made shift over that of the bias update.
            ! qualitative
            ! quoted disagrees: The ratio grows with width and input mean, which the source does not give: a two-layer
            transformer of width 16 has a median of 5.84.
        74  population  boundary_motion/motion-over-total | 0.994
            Median, over layers and checkpoints, of the norm of the weight-made shift over that of the total shift.
            ! qualitative
        75  population  boundary_motion/motion-through-weights
            Under AdamW most of the common shift of a layer's output comes from its weights, little from its bias.
            ! qualitative
        76  identity  boundary_motion/sbo-adamw-rule | g_W-g_bμ^T
            The rule steps centred weight gradient and bias gradient separately, and the realised shift is the bias
            step.
        77  population  boundary_motion/accuracy-gain
            SBO-AdamW classifies better than AdamW, in the one run reported.
            ! qualitative
            ! predicted disagrees: On a counting task with a two-layer transformer and one seed the validation accuracy
            is 0.9655 with SBO-AdamW and 0.9725 with AdamW, so there is no gain.
        78  population  boundary_motion/validation-accuracy-adamw | 81.68%
            Validation accuracy on film reviews with AdamW.
        79  population  boundary_motion/validation-accuracy-sbo | 85.81%
            Validation accuracy on film reviews with SBO-AdamW.
        80  population  boundary_motion/test-accuracy-adamw | 78.73%
            Test accuracy of AdamW at its best validation checkpoint.
        81  population  boundary_motion/test-accuracy-sbo | 82.73%
            Test accuracy of SBO-AdamW at its best validation checkpoint.
        82  population  boundary_motion/best-step-sbo | 800
            Step at which SBO-AdamW validates best.
        83  population  boundary_motion/best-step-adamw | 3000
            Step at which AdamW validates best.
        84  population  boundary_motion/bias-drift
            Compensating with the mean of the current batch makes the biases wander far from zero.
            ! qualitative
        84  population  boundary_motion/boundary-energy-loss
            Compensating with the mean of the current batch leaves much less common shift than AdamW makes.
            ! qualitative
        85  population  boundary_motion/not-general-purpose
            The rule serves as a diagnostic and is not offered as a finished optimizer.
            ! out_of_scope: It limits what the source claims; there is no quantity to measure.
        86  identity  boundary_motion/next-step
            An affine layer written around a fixed centre is proposed as the remedy.
            ! out_of_scope: It is a plan of the source, without a stated outcome.
        # abstract: weight-tied looped transformers
        87  population  looped_transformers/linear-frontier
            In a freely trained loop the number of solved positions grows in proportion to the loops applied.
        88  limit  looped_transformers/budget-law | v ~ n_train/T_train
            Positions solved per loop follow training length divided by training loops.
        89  limit  looped_transformers/budget-law-exponent | 0.98 +/- 0.04
            Exponent with which frontier speed follows training length per training loop, over trained models.
        90  limit  looped_transformers/budget-law-fit | 0.99
            Share of the variance of frontier speeds that the fitted power law explains (R squared).
        91  population  looped_transformers/unit-speed | T=n
            Trained with as many loops as positions, the model solves one position per loop.
        92  population  looped_transformers/minimum-demanded
            SGD settles on the slowest frontier that still meets the training budget.
        93  population  looped_transformers/extra-loops
            At unchanged length, more loops than in training solve positions that were still wrong.
        94  identity  looped_transformers/halting-rule | T* = ceil(n / v-hat)
            Length over measured speed, rounded up, is the number of loops after which every position is right.
        95  population  looped_transformers/untied-learn-scans
            Transformers of ordinary depth solve group words by a parallel scan.
        95  population  looped_transformers/tying-selects-serial
            Sharing one block across loops yields the serial mechanism, also where the inputs would allow a scan.
        96  population  looped_transformers/untied-extrapolate-worst
            At equal depth and size, models without shared weights do worst on longer words.
        96  population  looped_transformers/untied-fail-a5
            Models without shared weights do not learn words in the alternating group A5.
        97  population  looped_transformers/a5-generalizes
            Looped models carry A5 words to unseen lengths although the task is complete for NC1.
        98  population  looped_transformers/s5-deadlock | 120x120
            Training on S5 words from the start stalls, because of the size of the group's multiplication table.
        99  population  looped_transformers/operator-first-curriculum
            Learning the group operation before the words removes the stall, for all seeds.
        100  population  looped_transformers/warm-start
            Started from a model of another budget, training keeps the mechanism and changes only its speed.
        101  population  looped_transformers/imposed-seriality
            Feeding the positions one after another gives worse models than leaving the mechanism to training.
        102  null_model  looped_transformers/standard-instruments
            Measures taken at the loop's fixed point read the same for different mechanisms.
        103  identity  looped_transformers/convergence-time | tau(n,i)
            The first loop from which a position stays right tells reference algorithms apart and yields their speed.
        104  population  looped_transformers/damage-cone
            Damage to one position spreads over later ones at the measured speed.
        105  null_model  looped_transformers/head-predicts-extrapolation
            Convergence times on training lengths predict success on longer words; measures at the end of the loop fail.
        106  population  looped_transformers/replication
            The findings hold as well on a published benchmark that grades tasks by difficulty.
            ! qualitative
        # abstract: adaptive Runge-Kutta Adam
        107  limit  rk_adam/scheme
            The embedded pair has local error of order four and an error estimate of order three.
        108  identity  rk_adam/equal-budget
            All methods are charged per gradient evaluation, rejected stages included, and stop at one budget.
        109  population  rk_adam/original-loses-full-batch
            At equal budget and full batch, plain Adam trains to a lower loss than the Runge-Kutta variant.
        109  population  rk_adam/original-loses-minibatch
            At equal budget on minibatches, plain Adam trains to a lower loss than the Runge-Kutta variant.
        110  bound  rk_adam/error-below-tolerance
            The scaled error estimate never comes near one, so the controller always asks for the largest step.
        111  population  rk_adam/steps-at-cap | 98-100 percent
            Share of steps taken at the largest allowed size.
        112  bound  rk_adam/inert-at-usual-tolerance
            At relative tolerances of 1e-4 and above, no choice of step cap and first step lets the controller act.
        112  bound  rk_adam/inert-at-any-tolerance
            There is no tolerance, however small, at which the controller acts.
            ! predicted disagrees: The controller wakes up at a small enough tolerance: at a relative tolerance of 1e-6
            97% of the steps are at the cap, at 1e-8 only 0.1%.
        113  identity  rk_adam/identical-trajectories | 100x
            Factor between tolerances over which the trajectories agree in every bit.
        114  identity  rk_adam/averaged-gradient-adam
            The variant takes the same steps as Adam of constant step fed with a weighted mean of stage gradients.
        115  identity  rk_adam/cost | 3-4x
            Gradient evaluations per step, relative to Adam.
        116  population  rk_adam/repair-reverses-cross-entropy
            With rejection and an error measured on the actual step, full-batch cross-entropy falls below tuned
            constant-rate Adam.
        116  population  rk_adam/repair-reverses-squared-error
            With rejection and an error measured on the actual step, full-batch squared error falls below tuned Adam.
            ! predicted disagrees: The reversal needs a separable cross-entropy: on interpolating regression tuned Adam
            reaches 9e-17 and the repaired method at best 2.3e-6.
        117  population  rk_adam/full-batch-gain | 40x
            Factor by which the repaired method ends below the training loss of tuned Adam at full batch.
        118  null_model  rk_adam/mechanism
            With a constant step the repaired method gains nothing, so the gain comes from the emerging step schedule.
        119  population  rk_adam/fragile-first-step
            The repaired method's result changes by orders of magnitude with the first step size.
        119  population  rk_adam/no-test-gain
            The lower training loss brings no higher test accuracy.
            ! qualitative
        120  population  rk_adam/depth-not-overfitting
            Going to lower training loss does not by itself cost test accuracy.
            ! qualitative
        120  population  rk_adam/temperature-hurts
            Adding noise of adjustable strength makes test accuracy worse.
            ! qualitative
        121  population  rk_adam/test-deficit | 1.3-3.4 points
            Test accuracy that the controller loses to first-order descent at the same training loss.
            ! qualitative
        122  population  rk_adam/averaging-regularizes
            Averaging stage gradients improves test results over Adam and AdamW with the same rate.
            ! qualitative
        123  population  rk_adam/averaging-wins | 10/10
            Seeds on which averaged stage gradients beat Adam and AdamW of equal rate.
            ! qualitative
        124  population  rk_adam/cheaper-baselines
            RMSprop and NAdam do at least as well for one gradient per step.
            ! qualitative
        125  population  rk_adam/verdict
            Tuned first-order methods reach, at lower cost, whatever the adaptive integrator reaches.
        # abstract: differential NTK
        126  bound  differential_ntk/positivity-shallow
            The infinite-width kernel of a shallow physics-informed network has a positive smallest eigenvalue.
        126  bound  differential_ntk/positivity-deep
            The infinite-width kernel of a deep physics-informed network has a positive smallest eigenvalue.
        127  bound  differential_ntk/smooth-activations
            Positivity holds for smooth activations such as sine and error function.
        127  bound  differential_ntk/power-activations
            Positivity holds for powers of the rectifier above the order of the operator.
        127  null_model  differential_ntk/polynomial-activation
            A polynomial activation gives a singular kernel once there are enough points.
        128  bound  differential_ntk/operators
            Positivity does not depend on the linear operator: elliptic, parabolic, hyperbolic or of first order.
        129  limit  differential_ntk/training
            Training residuals of wide physics-informed networks follow the linear flow of the kernel, better with
            width.
        # abstract: information allocation
        130-131, 134  identity  information_allocation/preconditioning-exponent | p
            The logarithm of the ratio of weight to bias correction is affine in the preconditioning exponent.
        132-133  identity  information_allocation/residual-pathways
            A step changes the residual by one term projected on the inputs and one along its mean, and by nothing else.
        135  population  information_allocation/write-in-ratio
            The share of the residual change made by the bias differs between optimizers during training.
        136  identity  information_allocation/end-point
            The allocation decides which interpolating solution a fixed preconditioner reaches.
        136  population  information_allocation/generalisation
            Changing the allocation changes the test error of the trained model.
            ! qualitative
        # abstract: learning opacity
        137  population  learning_opacity/complex-system
            Training a network belongs to the complex systems.
            ! out_of_scope: It is a classification argued in words, without a measurable criterion.
        138-139  local  learning_opacity/weight-sensitivity
            Small changes of the initial weights grow or shrink at the finite-time Lyapunov rate of training.
            ! qualitative
        138, 140  null_model  learning_opacity/feedback
            Replaying recorded gradients, which cuts the feedback, removes the growth of perturbations.
            ! qualitative
        138, 141  local  learning_opacity/data-sensitivity
            The weights respond to the weight of one training sample as the linearised recursion says.
            ! qualitative
        142-143  population  learning_opacity/irreducible
            These sources of opacity cannot be taken away without changing what learning is.
            ! out_of_scope: It is a philosophical conclusion that no experiment decides.
        # abstract: conservation law for EP and CL
        144  limit  conservation_law/conserved-mass-ep
            Equilibrium propagation keeps the sum of squared conductances as nudging and step size go to zero.
        144  limit  conservation_law/conserved-mass-cl
            Coupled learning keeps the sum of squared conductances as nudging and step size go to zero.
        145  identity  conservation_law/other-settings
            A conserved quantity exists as well for nonlinear resistors and for other parametrisations of the edges.
        146  identity  conservation_law/linear-circuit-convergence
            On the sphere of constant mass a voltage divider is driven to its one solution from every start.
        # abstract: task diversity in ICL
        147-148  identity  task_diversity/task-model
            For linear attention the mixture of low-rank Gaussian tasks acts through its second moment, whose rank is
            the number of distinct columns.
        149  population  task_diversity/generalization
            The best reachable loss on isotropic test tasks falls as the training subspaces share fewer columns.
        149-150  limit  task_diversity/plateau-mean-loss
            When the loss is the mean over task classes, diversity shortens the plateau of the training loss.
            ! predicted disagrees: Under the mean loss the plateau lasts longer with diversity: half of the fall is
            reached at time 3.49 with 4 distinct columns and at 5.94 with 12.
        150  limit  task_diversity/plateau-summed-loss
            When the losses of the task classes are added up, more classes shorten the plateau of the training loss.
        150  transition  task_diversity/plateau-test-loss
            On isotropic test tasks the loss leaves its plateau only if the training tasks are diverse enough.
        151  identity  task_diversity/out-of-distribution
            A task that mixes training subspaces costs as much as one inside a subspace; a task outside their span
            fails.
        152  population  task_diversity/nonlinear
            Nonlinear transformers and nonlinear targets show the same effects of diversity.
            ! qualitative
        # abstract: two training clocks
        153  transition  two_clocks/two-clocks
            The time to fit stays the same while the time to simplify grows as weight decay is lowered.
        154  bound  two_clocks/loss-clock
            If the class margin grows at least linearly, the time to reach a loss is at most logarithmic in its inverse.
        155  identity  two_clocks/schatten-penalty
            The least layerwise weight norm of a given product is a Schatten energy of it, reached by balanced factors.
        156  limit  two_clocks/structure-clock
            Under a power-law tail inequality the excess energy needs a time polynomial in the inverse tolerance.
        157  identity  two_clocks/relu-reduction
            Until a unit changes its on-off pattern, a ReLU network trains exactly as the masked linear one.
        158  population  two_clocks/head-gradients
            The gradient of the output layer is larger than that of the embedding during training.
        159-160  population  two_clocks/modular-addition
            On modular addition the training set is fitted early, and embedding neurons turn into single waves later.
        161  population  two_clocks/conditional
            For nonlinear networks only conditional statements are made.
            ! out_of_scope: It limits what the source claims; there is no quantity to measure.
        # abstract: when both layers learn
        162  identity  both_layers/setting
            For Gaussian inputs and a linear teacher the population loss and its gradient have closed forms.
        163  identity  both_layers/non-strict-saddles
            There are stationary points that are no minima and yet have no direction of negative curvature.
        164  limit  both_layers/linear-rate-two-neurons
            With one neuron per output sign, gradient descent from small weights converges at a linear rate.
        164  limit  both_layers/linear-rate-many-neurons
            With several neurons per output sign, population gradient descent still converges at a linear rate.
            ! predicted disagrees: With eight neurons the population loss falls like a power of time: the local exponent
            goes from -1.34 to -2.21 and the loss is still 7.1e-10 at time 6e4; neurons of equal sign disagree by angles
            falling as 1/t.
        165  limit  both_layers/sample-complexity
            A number of samples proportional to the input dimension is enough for convergence.
        166  transition  both_layers/three-phases
            Training passes through alignment, growth and refinement, in this order.
        167  transition  both_layers/alignment
            Hidden weights first turn to the teacher, in a time free of the initial scale, and output signs are kept.
        168  limit  both_layers/growth
            Aligned neurons then grow in both layers, for a time logarithmic in the initial scale.
        169  limit  both_layers/refinement
            Near the solution the angle to the teacher of a single neuron per sign decays exponentially.
        170  population  both_layers/saddles-avoided
            Gradient descent from random small weights of both signs ends at a global minimum, not at a saddle.
        171  limit  both_layers/uniform-concentration
            Sample and population gradients stay close all along the path.
        # abstract: group composition
        172-173  identity  group_composition/riemannian-ascent
            For the product of two group elements, each neuron climbs on spheres an energy that splits over irreducible
            representations.
        174  population  group_composition/single-irrep
            Under the norm-keeping flow every neuron ends on one irreducible representation.
        175-176  identity  group_composition/rank-one-alignment
            At the end the matrix Fourier coefficients of the three layers have rank one and share their factors.
        177  law  group_composition/diversification
            In Abelian groups neurons spread evenly over the nontrivial representations.
        177  law  group_composition/uniform-phases
            In Abelian groups the phases of the neurons are uniform on the circle.
        178  limit  group_composition/majority-vote
            The summed votes of many such neurons approach the indicator of the right product.
        179  limit  group_composition/phase-alignment-rate
            The phase mismatch between layers decays exponentially.
        179  limit  group_composition/competition-rate
            The weight of losing representations in a neuron decays exponentially.
        # abstract: two-factor linear transformer
        180  identity  two_factor_map/reduction | μ
            Gradient descent of the one-prompt transformer is a map of two numbers with a single step parameter.
        181  transition  two_factor_map/balanced-monotone
            For equal factors the loss falls at every step up to one step size and overshoots before converging above
            it.
        181  transition  two_factor_map/balanced-periodic
            For equal factors convergence gives way to a two-cycle, which later loses its own stability.
        181  transition  two_factor_map/balanced-chaotic
            For equal factors period doubling ends in bounded chaos of positive Lyapunov exponent.
        181  transition  two_factor_map/balanced-divergent
            For equal factors almost every start diverges beyond a last step size.
        182  identity  two_factor_map/invariant-ellipse | 0<μ<2
            An explicit ellipse is mapped onto itself, and its inside and outside are never exchanged.
        183  identity  two_factor_map/ellipse-chaotic
            On the ellipse the map triples an angle, so orbits there are chaotic.
        183  identity  two_factor_map/ellipse-repelling
            The Lyapunov exponent across the ellipse is positive, so nearby orbits leave it.
        184  identity  two_factor_map/balanced-attracting
            Attractors with equal factors draw in orbits with unequal ones.
        185-186  transition  two_factor_map/attractor-changes
            Past the threshold, training from general starts ends in a cycle, in chaos or at infinity, not at the
            regression solution.
        187  population  two_factor_map/mini-batch
            Something follows for mini-batch training.
            ! out_of_scope: The source announces a discussion and names no consequence.
        """
    ),
)
