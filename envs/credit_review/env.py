"""`habitus/CreditReview-v0` as Gymnasium sees it."""

from __future__ import annotations

from typing import Any, get_args

from .. import arguments, regimes
from ..adapter import DEFAULT_HORIZON, MAX_HORIZON, WorldEnv
from ..contract import FeedbackMode, World
from .applicants import ApplicantTable
from .real import table_credit
from .synthetic import DIFFICULTIES, synthetic_credit
from .synthetic_applicants import MAX_APPLICANTS
from .table_params import Economics

SYNTHETIC = "synthetic"
DEFAULT_DIFFICULTY = "medium"


class CreditReviewEnv(WorldEnv):
    """A bank decides about loan applications and learns, late and selectively, whom it should have trusted.

    ## Description
    Each step shows one application. What became of a loan is known 20 to 100 decisions later, and only where money was
    paid out: a rejected applicant never shows an outcome. Applicants are either synthetic or the rows of a real table.

    **Synthetic** applicants mostly return (80 of them make 80 % of the applications at `medium`). The risk of each
    depends on the observed fields, on the quality of documents that are seen on request only, and on a hidden effect of
    the person that is larger than any other: it can be learnt by remembering how earlier loans to the same applicant
    ended. Half of the fields change from application to application, so that they do not betray who applies. The log
    odds of default and all their constants stand in `envs/credit_review/synthetic_applicants.py`.

    **Real** applicants come once each: the rows of a table in random order, all of them before any comes again. Their
    outcome is the recorded one.

    With `regime`, the rules change during the episode (level 0 = first rules, 1 = second, mixtures in tenths):

    | | First rules | Second rules |
    | --- | --- | --- |
    | Synthetic, employment: effect on the log odds of default | .7, .1, -.3, -.5 | -.5, -.2, .2, .9 |
    | Synthetic, purpose: effect on the log odds of default | 0, .5, -.4, .9, -.2 | .9, -.5, .6, -.8, .9 |
    | Synthetic, fine for each loan paid out to an applicant of high or very high debt; half for a reduced one | 0 | 1 |
    | Table, gain of a repaid loan (cap on interest) | g | .6 g |
    | Table, charge on each loan paid out of 1.25 times the mean amount or more, per unit of stake | 0 | .8 g |

    ## Action Space
    `Discrete(5)`; all but `request_document` close the application.

    | Num | Action | Effect |
    | --- | --- | --- |
    | 0 | approve | pays out; the outcome follows in 20 to 100 steps |
    | 1 | reject | nothing is paid, now or later, and nothing is ever learnt about the applicant |
    | 2 | manual_review | a reviewer decides for a fee; `info["verdict"]` says at once what; right with probability .9 |
    | 3 | request_document | for a fee, the same applicant again with more to see; a synthetic one withdraws with 5 % |
    | 4 | approve_reduced | pays out 55 % of the amount |

    `info["action_mask"]` and `env.unwrapped.action_masks()` are False for `request_document` where there is nothing
    left to show: documents that were requested before, or that nobody withheld. Taken all the same it costs its fee and
    shows nothing; a synthetic applicant may withdraw (5 %) as after any request.

    ## Observation Space
    `Dict`; category fields are `Discrete`, numbers `Box(shape=(1,), dtype=float32)`. `env.unwrapped.schema` has labels,
    units, bounds and quantiles. Synthetic applicants:

    | Field | Codes |
    | --- | --- |
    | income | very low, low, middle, high, very high |
    | debt | none, low, middle, high, very high |
    | employment | seasonal, temporary, permanent, self-employed |
    | history | none, short, medium, long |
    | past_default | none, one, several |
    | amount | small, medium, large, very large |
    | purpose | household, business, home, refinancing, vehicle |
    | region | north, east, west, south |
    | age | 18-29, 30-44, 45-59, 60 and over |
    | group | a, b; only with `observe_group`; group b has lower income and history and lives in the south |
    | documents | not requested, good, poor; wrong with probability .1 |
    | applicant | new, #1, #2, ...; only with `observe_entity` |

    Real applicants: the fields of the table; beside each number that can be unknown its status (known, missing,
    hidden); the recorded group with `observe_group`; `stake`, the amount relative to the mean amount, if the table has
    amounts; and `documents` (withheld, shown): some applicants arrive with a declared group of fields hidden until it
    is requested.

    ## Measurement
    `env.unwrapped.audit()` has `group` and, of synthetic applicants, `applicant`, `effect` (own log odds in 1/1000) and
    `has_good_documents`; of real ones `row`, `bad` (the recorded outcome) and `epoch` (times the table was used up).

    ## Rewards
    With `feedback="attributed"` the reward of a decision contains its later outcome, with `"stream"` the outcome is
    part of the reward of the step on which it arrives. Both list it in `info["feedback"]` as `(decision_id, value)` on
    arrival. `info["decision_id"]` names a decision whose outcome is still to be listed and is -1 otherwise.

    | | Synthetic, amount s = 0..3 | Table, stake a |
    | --- | --- | --- |
    | loan repaid | .6 + .3 s | g a |
    | loan lost | -(1.6 + .9 s) | -l a |
    | reduced loan repaid / lost | .55 x .8 / .55 x .75 of it | .55 of it |
    | manual review | -.3 and the loan if the verdict is good | -.6 P and the loan if the verdict is good |
    | request for documents | -.06, repeated -.2 | -.1 P |

    A synthetic reviewer judges whether the loan is worth its risk, a real one whether it will be repaid. l is `loss`;
    g is `gain`, by default that at which approving everybody pays nothing; P is the mean reward of perfect decisions
    under the first rules. The mean reward of a step of synthetic applicants at `medium`,
    by `habitus scores` (seeds 1000-1019, 30,000 steps each, ±.01; `experiments/published/worlds.md`):

    | Rules | Random | Reject all | Expert rules | Filter that forgets | Filter | Oracle |
    | --- | --- | --- | --- | --- | --- | --- |
    | first | -.187 | 0 | .028 | .120 | .253 | .326 |
    | second | -.362 | 0 | -.068 | .072 | .153 | .205 |

    The filtering oracle (`world.filter(None)`) knows these dynamics and infers applicants from what agents see, from
    outcomes when they arrive; the one that forgets (`forgets=True`) has no memory of anybody. The oracle knows every
    effect and document. A table has no filter.

    ## Starting State
    The seed draws the returning applicants or the order of the table, and the first application. A reset without a seed
    continues the stream of the last one.

    ## Episode End
    ### Termination
    Never.
    ### Truncation
    After `horizon` decisions. Outcomes that are still to come are not listed then; under "stream" they are not paid.

    ## Arguments
    | Parameter | Type | Default | Description |
    | --- | --- | --- | --- |
    | `applicants` | str or ApplicantTable | "synthetic" | who applies; through `gymnasium.make` also a name or a path |
    | `horizon` | int | 2000 | decisions in an episode, 1 to 1,000,000 |
    | `regime` | str or list | "none" | "none"; "shift" = "regulation", second rules from `shift_at` on; "periodic", \
first and second in turn, `shift_at` each; "drift", from `shift_at` on slowly; or a list of (step, level), \
with the first rules before its first step |
    | `shift_at` | int | None | step of the first change; by default half of the horizon, a fifth for \
"periodic" and "drift" |
    | `difficulty` | str | "medium" | "easy": 30 applicants return, with 90 % of the applications; "medium": 80, 80 %; \
"hard": 240, 80 %, and their effects drift. A table has only "medium" |
    | `observe_entity` | bool | True | whether the synthetic applicant's number is observed |
    | `observe_group` | bool | False | whether the sensitive group is observed; `audit()` has it in any case |
    | `feedback` | str | "attributed" | when delayed outcomes are paid: "attributed" or "stream" |
    | `loss` | float | 1.0 | tables: loss of a bad loan per unit of stake |
    | `gain` | float | None | tables: gain of a good loan per unit of stake; None = break-even of approving everybody |
    | `review_reliability` | float | 0.9 | tables: probability that a verdict is right |
    | `review_fee` | float | 0.6 | tables: fee of a review, in units of P |
    | `document_fee` | float | 0.1 | tables: fee of a request, in units of P |
    | `reduced` | float | 0.55 | tables: part of the amount that a reduced loan pays out |
    | `hide_probability` | float | 0.4 | tables: share of applicants that arrive with documents withheld |
    | `capacity` | int | None | synthetic applicants: how many that return a state has room for, 32,767 at most; by \
default those of `difficulty` |
    | `render_mode` | str | None | "human", "ansi" or "rgb_array" |

    ## Vectorized environment
    `gymnasium.make_vec("habitus/CreditReview-v0", num_envs=n)` steps n of them in one compiled call, with the autoreset
    modes NEXT_STEP, SAME_STEP and DISABLED; for one seed its episodes equal those of n scalar environments bit by bit.
    `env.unwrapped.world` is made of pure JAX functions that can be jitted, vmapped and scanned, over states and over
    `env.unwrapped.params`: worlds with the same observed fields and the same `capacity` are equal, so that params of
    different difficulty, schedule and feedback can be stacked and run in one call.

    ## Version History
    * v0: first version

    Errata of v0: none. What came later left every observation, reward and outcome of a seed as it was: action masks,
    `capacity` (another capacity than the preset's draws other applicants) and the filtering oracle.

    ## References
    * Dastile, X., Celik, T., Potsane, M. (2020). Statistical and machine learning models in credit scoring: a
      systematic literature survey. Applied Soft Computing 91.
    * Lakkaraju, H., Kleinberg, J., Leskovec, J., Ludwig, J., Mullainathan, S. (2017). The selective labels problem:
      evaluating algorithmic predictions in the presence of unobservables. KDD.
    * Liu, L. T., Dean, S., Rolf, E., Simchowitz, M., Hardt, M. (2018). Delayed impact of fair machine learning. ICML.
    """

    def __init__(
        self,
        applicants: str | ApplicantTable = SYNTHETIC,
        *,
        horizon: int = DEFAULT_HORIZON,
        regime: regimes.RegimeArgument = "none",
        shift_at: int | None = None,
        difficulty: str = DEFAULT_DIFFICULTY,
        observe_entity: bool = True,
        observe_group: bool = False,
        feedback: FeedbackMode = "attributed",
        loss: float = Economics.loss,
        gain: float | None = Economics.gain,
        review_reliability: float = Economics.review_reliability,
        review_fee: float = Economics.review_fee,
        document_fee: float = Economics.document_fee,
        reduced: float = Economics.reduced,
        hide_probability: float = Economics.hide_probability,
        capacity: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        horizon = arguments.whole_number("horizon", horizon, 1, MAX_HORIZON)
        arguments.choice("difficulty", difficulty, tuple(DIFFICULTIES))
        arguments.choice("feedback", feedback, get_args(FeedbackMode))
        arguments.switch("observe_entity", observe_entity)
        arguments.switch("observe_group", observe_group)
        schedule = regimes.schedule(regime, horizon, shift_at)
        economics = Economics(loss, gain, review_reliability, review_fee, document_fee, reduced, hide_probability)
        world: World
        if isinstance(applicants, ApplicantTable):
            if difficulty != DEFAULT_DIFFICULTY:
                raise ValueError(
                    f"`difficulty` must be {DEFAULT_DIFFICULTY!r} for a table of applicants, got {difficulty!r}; "
                    "it sets how synthetic applicants return."
                )
            if capacity is not None:
                raise ValueError(
                    f"`capacity` must be None for a table of applicants, got {capacity!r}; nobody of a table returns."
                )
            world = table_credit(
                applicants, economics, schedule=schedule, feedback=feedback, observe_group=observe_group
            )
        else:
            _check_synthetic(applicants, economics)
            if capacity is not None:
                n_returning = DIFFICULTIES[difficulty].n_applicants
                capacity = arguments.whole_number("capacity", capacity, n_returning, MAX_APPLICANTS)
            world = synthetic_credit(
                difficulty=difficulty,
                capacity=capacity,
                schedule=schedule,
                feedback=feedback,
                observe_entity=observe_entity,
                observe_group=observe_group,
            )
        super().__init__(world, horizon=horizon, render_mode=render_mode)
        self.table = (
            applicants if isinstance(applicants, ApplicantTable) else None
        )  # measurement and expert rules read it


def _check_synthetic(applicants: Any, economics: Economics) -> None:
    if not isinstance(applicants, str):
        raise TypeError(
            f"`applicants` must be {SYNTHETIC!r} or an ApplicantTable, got {type(applicants).__name__}; "
            "`habitus.scenarios.load_applicants` makes a table of a file."
        )
    if applicants != SYNTHETIC:
        raise ValueError(
            f"`applicants` must be {SYNTHETIC!r} or an ApplicantTable, got {applicants!r}; names and paths of tables "
            'are known to `gymnasium.make("habitus/CreditReview-v0", applicants=...)`.'
        )
    for name, default in vars(Economics()).items():
        value = getattr(economics, name)
        if value != default:
            raise ValueError(
                f"`{name}` must be {default} for {SYNTHETIC} applicants, got {value}; it belongs to tables, the "
                "economics of synthetic applicants are fixed."
            )
