"""`habitus/CustomerService-v0` as Gymnasium sees it."""

from __future__ import annotations

from typing import get_args

from .. import arguments, regimes
from ..adapter import DEFAULT_HORIZON, MAX_HORIZON, Narrate, WorldEnv
from ..contract import FeedbackMode
from .world import DIFFICULTIES, customer_service

DEFAULT_DIFFICULTY = "medium"
MAX_CAPACITY = 2**15 - 1


class CustomerServiceEnv(WorldEnv):
    """A service desk answers tickets of returning customers, whose hidden persona decides how they must be met.

    ## Description
    A long episode is a chain of tickets, one after the other, each of one customer; a ticket takes 2 to 6 turns. In
    every turn the desk acts and the customer answers. Customers return. Each has a hidden persona that persists from
    ticket to ticket and sometimes drifts. **The first action of a ticket wins or loses the customer's trust**, and
    which one wins it depends on the persona alone. Nothing that is seen before the first action depends on the persona,
    so it has to be remembered from earlier tickets; one ticket tells it badly, three tell it well.

    Hidden are the persona, the trust (lost, undecided, won), the cause of the issue (a or b, until `clarify` was used),
    the true mood, and whether the issue is solved.

    **Trust** is undecided before the first action, which wins / loses it with these chances in %:

    | Persona | Rules | template | detailed | apologise | clarify | discount | refund | replace | escalate |
    | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
    | hasty | first | 15/45 | 0/80 | 5/60 | 0/80 | 25/35 | **90/0** | **75/5** | 5/60 |
    | | second | **65/8** | 0/80 | 5/60 | 0/80 | **85/3** | 10/65 | 25/40 | 5/60 |
    | thorough | first | 0/85 | **85/3** | 10/50 | 65/8 | 2/75 | 5/65 | 10/55 | 15/45 |
    | | second | 5/70 | 35/35 | 10/50 | **88/2** | 2/75 | 5/65 | 10/55 | 15/45 |
    | human_seeker | first | 0/90 | 5/70 | 5/60 | 0/80 | 2/70 | 10/55 | 10/55 | **92/0** |
    | | second | 0/90 | 5/70 | **85/3** | 10/60 | 2/70 | 10/55 | 10/55 | 15/60 |
    | haggler | first | 0/75 | 5/65 | 5/60 | 5/65 | **88/2** | 45/25 | 10/55 | 5/60 |
    | | second | 0/75 | 5/65 | 5/60 | 5/65 | 20/50 | 15/55 | **88/2** | 5/60 |
    | loyal | first | 45/12 | 40/12 | **88/2** | 35/20 | 5/60 | 5/60 | 15/45 | 0/70 |
    | | second | 30/20 | 55/10 | **80/3** | 35/20 | 30/30 | 5/60 | 15/45 | 0/70 |

    In later turns an action moves trust by .3 of these chances: lost becomes undecided when it wins; undecided becomes
    won or lost; won becomes undecided when it loses.

    **Solution.** An open issue is solved with the chance below (cause a / cause b) times the acceptance of the trust
    after the action (lost .6, undecided .85, won 1.05), at most .97:

    | Action | Rules | setup | delivery | damage | usage | account | invoice |
    | --- | --- | --- | --- | --- | --- | --- | --- |
    | template | first | .75/.05 | .5/.05 | .05/.05 | .6/.05 | .7/.1 | .1/.05 |
    | | second | .15/.1 | .7/.5 | .05/.05 | .75/.6 | .2/.2 | .5/.1 |
    | detailed | first | .5/.1 | .7/.15 | .1/.15 | .75/.55 | .8/.7 | .15/.6 |
    | | second | .75/.6 | .4/.15 | .1/.15 | .3/.15 | .5/.5 | .2/.15 |
    | refund | first | .3/.3 | .3/.9 | .9/.9 | .3/.3 | .3/.3 | .9/.3 |
    | | second | .3/.3 | .3/.3 | .3/.8 | .3/.3 | .3/.3 | .3/.3 |
    | replace | first | .15/.9 | .15/.15 | .9/.15 | .15/.15 | .15/.15 | .15/.15 |
    | | second | .2/.2 | .2/.9 | .9/.9 | .2/.2 | .2/.2 | .9/.9 |

    escalate .8 (first) and .5 (second) for all, discount .1, apologise, clarify and close 0.

    **Mood** then moves by one step: up with .03, .12, .3 and down with .35, .2, .08 by trust (lost, undecided, won);
    `apologise` adds .15 to up, an issue solved in this turn .4; a solved issue multiplies down by .3.

    **Answer.** Of a solved issue: thanks .85, neutral .15. Of an open one: thanks .05, a typical request with .75, .5,
    .2 by trust (lost, undecided, won), neutral otherwise. Typical is for hasty: hurry .7, money .3; thorough: why .9,
    hurry .1; human_seeker: human .85, why .15; haggler: money .85, hurry .15; loyal: neutral .7, why .3.

    **Leaving.** After the answer the customer leaves: in the first turn never, in turns 2 to 5 only if the issue is
    open, with .03 (angry .35), .12 more if trust is lost; in turn 6 always.

    **Close.** In the first turn it reopens the ticket at once: trust is lost, the mood is one step worse, .6 is paid.
    In turns 2 to 5 the ticket reopens with .5 if the issue is open, with .25 if it is solved and trust is lost, .2 more
    for hagglers whose trust is not won: the issue is open again, the mood one step worse, .3 is paid. Otherwise, and
    always in turn 6, the ticket ends. `close` moves neither trust nor mood else.

    **Survey.** A ticket that ended is rated with .6: high with .35 (solved) or .05 (open) plus .5 (trust won) or .15
    (undecided); low with .05 (solved) or .45 (open) plus .5 (lost) or .1 (undecided); middle otherwise.

    **Who comes next.** Customer i (from 0) comes with a weight of 1 / (1 + slope i); see the table of `difficulty` for
    the number of customers, the slope and the chance that a persona is drawn anew at an arrival (drift). With chance
    `hot` it is one of the last five; otherwise one who has stayed away for at least `gap` tickets is preferred.

    With `regime`, the rules change during the episode (level 0 = first rules, 1 = second). In between, chances and
    prices are mixed linearly, in tenths. Under the second rules a refund needs an approval, vouchers are immediate,
    texts are written by a machine, escalation is a queue. Personas stay; `redraw_personas` draws those of everybody who
    is away at an entry of the schedule anew, also where the entry changes no rule.

    ## Action Space
    `Discrete(9)`; all are always possible (`info["action_mask"]`).

    | Num | Action | Price, first rules | Price, second rules |
    | --- | --- | --- | --- |
    | 0 | template | .05 | .05 |
    | 1 | detailed | .15 | .15 |
    | 2 | apologise | .08 | .08 |
    | 3 | clarify: the cause is observed for the rest of the ticket | .10 | .10 |
    | 4 | discount | .35 | .40 |
    | 5 | refund | .70 | 1.60 |
    | 6 | replace | .55 | .40 |
    | 7 | escalate | .55 | .90 |
    | 8 | close | 0 | 0 |

    ## Observation Space
    `Dict` of `Discrete`; `env.unwrapped.schema` has the labels.

    | Field | Codes |
    | --- | --- |
    | issue | setup, delivery, damage, usage, account, invoice |
    | detail | unknown, cause a, cause b |
    | mood | angry, annoyed, calm, pleased: the true one with .75, else one worse or better alike, drawn in every step |
    | turn | 1 to 6 as codes 0 to 5 |
    | reply | start, thanks, neutral, money, why, human, hurry, reopened: the answer to the last action |
    | channel | chat, mail: no influence |
    | tier | basic, silver, gold: number of the customer modulo 3, no influence |
    | last_seen | when the customer left last: never, under 30 steps ago, under 150 steps ago, longer ago |
    | customer | unknown, #1, #2, ...; only with `observe_entity`; unknown never occurs |

    `info` has, beside `decision_id`, `feedback`, `boundary`, `regime` and `action_mask`: `answer`, what the customer
    said to this action, also in leaving (after `close`: reopened or none); `exchange`, the situation of the answer: the
    action and whether it was the first of the ticket, after `close` the first action of the ticket that reopened;
    `survey` (none, low, middle, high) and `first_action` when a ticket ended (else none); `ending` (none, closed,
    left). With `gymnasium.make("habitus/CustomerService-v0", text="en")`, or `"zh"`, `info["text"]` has in words what
    is observed: `customer`, what stands before the desk, `agent`, what the action said, `farewell`, the last words of a
    ticket. For measurement, `env.unwrapped.audit()` has what is hidden: `type`, the persona in the order of the tables
    above, `visitor`, the index of the customer, `cause`, `mood`, `trust` and `is_solved`.

    ## Rewards
    Every action costs its price, reopening its fee. A ticket that ends pays besides the sum of: solved 1.4, open -1.4;
    trust won .6, lost -.8; mood angry -.3, annoyed -.1, calm .1, pleased .3; -.5 if the customer left with the issue
    open. No outcome is delayed: both kinds of `feedback` pay the same, and `decision_id` is always -1. The mean reward
    of a step at `medium`, by `habitus scores` (seeds 1000-1019, 30,000 steps each); with all personas equally
    frequent the oracle earns exactly .4641 and .4266:

    | Rules | Random | Best fixed action | Filter that forgets | Filtering oracle | Oracle |
    | --- | --- | --- | --- | --- | --- |
    | first | -.384 | -.130 (detailed) | .023 | .370 | .465 |
    | second | -.549 | -.120 (template) | .104 | .376 | .427 |

    ## Starting State
    The seed draws the persona of every customer, all alike, and the first ticket. Every ticket begins with issue, cause
    and channel drawn alike, mood annoyed or calm, trust undecided, the issue open. A reset without a seed continues the
    stream of the last one.

    ## Episode End
    ### Termination
    Never.
    ### Truncation
    After `horizon` decisions, in the midst of a ticket or not.

    ## Arguments
    | Parameter | Type | Default | Description |
    | --- | --- | --- | --- |
    | `horizon` | int | 2000 | decisions in an episode, 1 to 1,000,000 |
    | `regime` | str or list | "none" | "none"; "shift" = "regulation", second rules from `shift_at` on; "periodic", \
first and second in turn, `shift_at` each; "drift", from `shift_at` on slowly; or a list of (step, level), \
with the first rules before its first step |
    | `shift_at` | int | None | step of the first change; by default half of the horizon, a fifth for \
"periodic" and "drift" |
    | `difficulty` | str | "medium" | what there is to remember, see below |
    | `observe_entity` | bool | True | whether the customer's number is observed |
    | `feedback` | str | "attributed" | "attributed" or "stream", the same here |
    | `redraw_personas` | bool | False | whether a change of the schedule draws personas anew |
    | `capacity` | int | None | customers that the state has room for, at least those of the difficulty (None); \
environments of one capacity share one compiled step, and their `params` can be stacked |
    | `render_mode` | str | None | "human", "ansi" or "rgb_array" |
    | `narrate` | callable | None | makes `info["text"]`; through `gymnasium.make`, `text="en"` or `text="zh"` instead |

    | Difficulty | Customers | Drift | Slope | Hot | Gap |
    | --- | --- | --- | --- | --- | --- |
    | easy | 12 | .002 | .15 | .3 | 0 |
    | medium | 40 | .005 | .15 | 0 | 0 |
    | hard | 400 | .05 | .01 | 0 | 120 |

    ## Vectorized environment
    `gymnasium.make_vec` steps all copies in one compiled call. `env.unwrapped.world` is made of pure functions that can
    be jitted, vmapped over states and `params`, and scanned.

    ## Version History
    * v0: first version

    Errata: none known.

    ## References
    * Littman, M. L., Cassandra, A. R., Kaelbling, L. P. (1995). Learning policies for partially observable
      environments: scaling up. ICML. (The filtering oracle acts by its Q-MDP.)
    * Puterman, M. L. (1994). Markov decision processes. Wiley. (The exact solution is its policy iteration.)
    * Davidow, M. (2003). Organizational responses to customer complaints: what works and what doesn't. Journal of
      Service Research 5(3).
    """

    def __init__(
        self,
        *,
        horizon: int = DEFAULT_HORIZON,
        regime: regimes.RegimeArgument = "none",
        shift_at: int | None = None,
        difficulty: str = DEFAULT_DIFFICULTY,
        observe_entity: bool = True,
        feedback: FeedbackMode = "attributed",
        redraw_personas: bool = False,
        capacity: int | None = None,
        render_mode: str | None = None,
        narrate: Narrate | None = None,
    ) -> None:
        horizon = arguments.whole_number("horizon", horizon, 1, MAX_HORIZON)
        arguments.choice("difficulty", difficulty, tuple(DIFFICULTIES))
        arguments.choice("feedback", feedback, get_args(FeedbackMode))
        preset = DIFFICULTIES[difficulty]
        if capacity is not None:
            arguments.whole_number("capacity", capacity, preset.n, MAX_CAPACITY)
        world = customer_service(
            preset=preset,
            capacity=preset.n if capacity is None else capacity,
            schedule=regimes.schedule(regime, horizon, shift_at),
            feedback=feedback,
            observe_entity=arguments.switch("observe_entity", observe_entity),
            redraw_personas=arguments.switch("redraw_personas", redraw_personas),
        )
        super().__init__(world, horizon=horizon, render_mode=render_mode, narrate=narrate)
