"""Which kind of statement is tested, and what a test can conclude."""

import enum


class Kind(enum.StrEnum):
    """The kind of a statement; it selects how a prediction and a measurement are compared.

    ===============  ==========================================================================================
    member           what is claimed
    ===============  ==========================================================================================
    ``IDENTITY``     two routes give the same number, up to rounding
    ``POPULATION``   a mean over the declared randomness equals a closed form
    ``LAW``          a distribution is the stated one
    ``BOUND``        an inequality is never violated
    ``LOCAL``        an approximation holds inside a declared horizon, and not outside it
    ``LIMIT``        an error vanishes with a declared exponent as a size grows
    ``TRANSITION``   a change of behaviour happens inside a declared bracket
    ``NULL_MODEL``   a reference model fails, by at least a declared factor
    ===============  ==========================================================================================
    """

    IDENTITY = "identity"
    POPULATION = "population"
    LAW = "law"
    BOUND = "bound"
    LOCAL = "local"
    LIMIT = "limit"
    TRANSITION = "transition"
    NULL_MODEL = "null_model"


class Result(enum.StrEnum):
    """What a comparison concludes.

    ``INCONCLUSIVE`` means that the run could not have seen an error of the size that matters; ``NOT_RUN`` that
    nothing was measured. Neither counts as agreement.
    """

    AGREES = "agrees"
    DISAGREES = "disagrees"
    INCONCLUSIVE = "inconclusive"
    NOT_RUN = "not_run"
