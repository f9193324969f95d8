"""`habitus/GameNPC-v0` as Gymnasium sees it."""

from __future__ import annotations

from typing import NamedTuple, get_args

from numpy.typing import ArrayLike

from .. import arguments, regimes, visitors
from ..adapter import DEFAULT_HORIZON, MAX_HORIZON, WorldEnv
from ..contract import FeedbackMode
from .opponents import opponents as behaviour_of
from .world import game_world

DEFAULT_DIFFICULTY = "medium"
MAX_CAPACITY = 2**15 - 1


class Difficulty(NamedTuple):
    """How much there is to remember, for how long, and how much of it shows."""

    players: visitors.Preset
    see: float  # chance that a player's move is seen


DIFFICULTIES = {
    "easy": Difficulty(visitors.Preset(8, 0.002, 0.35, 0.3, 0), 1.0),
    "medium": Difficulty(visitors.Preset(12, 0.01, 0.35, 0.0, 0), 1.0),
    "hard": Difficulty(visitors.Preset(200, 0.06, 0.01, 0.0, 60), 0.35),
}


class GameNPCEnv(WorldEnv):
    """An NPC meets returning players, whose hidden style decides what works against them.

    ## Description
    The agent is a non-player character, the NPC. A long episode is a chain of encounters, one after the other, each
    with one player. Players return. Each has a hidden style that persists from visit to visit and sometimes drifts:
    what wins against one loses against another, and whoever recognises a player need not find out again.

    In every step the NPC acts and the player moves, both at once. The player's move is drawn from its style and the
    situation, not from what the NPC does in the same step.

    | Style | Close | Near | Far |
    | --- | --- | --- | --- |
    | aggressive | strike .85, back off .1, guard .05 | advance .85, shoot .1, guard .05 | as near |
    | kiter | back off .75, strike .25 | shoot .75, back off .2, guard .05 | shoot .65, advance .35 |
    | ambusher, visible | hide h, strike and back off (1 - h) / 2 each | hide h, shoot and back off (1 - h) / 2 each | \
as near |
    | ambusher, hidden | strike .85, hide .15 | advance .65, hide .35 | as near |
    | guard | guard .7, strike .3 | guard .7, shoot .2, advance .1 | as near |
    | diplomat | guard .35, back off .25, advance .2, strike .2 | guard .35, back off .25, advance .2, shoot .2 | \
as near |

    h is .85 in forest and ruins, .6 on plain and hills. A visible player with 1 health left, unless aggressive, backs
    off with .4 and otherwise moves as in the table.

    **What a move brings** if the NPC's action does not change it. A blow costs the NPC 1 health, that of a strike from
    hiding 2.

    | Move | Chance of a blow | Afterwards |
    | --- | --- | --- |
    | strike | .9 when close, else nothing comes of it | when close the player is visible |
    | shoot | .7, close .3; in forest x .6 | the player is visible |
    | hide | 0 | the player is hidden |
    | advance | 0 | one step closer, hidden players stay hidden |
    | back off | 0 | one step away |
    | guard | 0 | |

    **What an action brings.** A hit costs the player 1 health, a surprise 2. Hits and blows are independent.

    | Action | Chance of a hit | Changes |
    | --- | --- | --- |
    | attack, close | .85; guard .25; hidden player .15; player backing off .3 | a guard deals a blow with .45; a \
player backing off is pursued: stays close and visible |
    | attack, near or far | 0 | the NPC comes one step closer |
    | shoot | .6, close .25; guard x .35; hidden x .15; forest x .6 | second rules x .45 |
    | defend | against a close strike .5 | its blow .12, from hiding .35; other blows x .4 |
    | scout | against one who is hidden or hides .6 | then the player is visible and blows x .2 |
    | retreat | 0 | from far the NPC escapes before anything happens; else one step away and blows x .6 |
    | ambush | against an advance or a close strike, by terrain: cover c | a surprise: the player is visible, the blow \
of a strike x (1 - .7 c); a shot instead hits the NPC, lying still, with .8 (forest .48) at every distance |
    | heal | 0 | 1 health more for the NPC, at most 5 |
    | negotiate | 0 | the player agrees by its style, and then nothing else happens |

    | Set by the regime | First rules | Second rules |
    | --- | --- | --- |
    | cover c: plain, forest, ruins, hills | .3, .9, .8, .5 | .75, .4, .4, .75 |
    | chance of the NPC's shots | as above | x .45 |
    | agrees: aggressive, kiter, ambusher, guard, diplomat | .02, .08, .04, .25, .65 | .02, .5, .04, .05, .15 |

    Players with 1 health left agree 1.3 times as often. Between the two (level 0 = first, 1 = second, in tenths) all
    chances are mixed linearly. The rules change, the styles do not: redrawing them is a switch of its own,
    `redraw_styles`, which also works without a change of rules (`regime=[(0, 0), (1000, 0)]`).

    ## Action Space
    `Discrete(8)`: 0 attack, 1 shoot, 2 defend, 3 scout, 4 retreat, 5 ambush, 6 heal, 7 negotiate.
    `info["action_mask"]` is False for `negotiate` while the player is hidden; taken anyway it only costs its price.

    ## Observation Space
    `Dict` of `Discrete`; `env.unwrapped.schema` has the labels.

    | Field | Codes |
    | --- | --- |
    | terrain | plain, forest, ruins, hills |
    | distance | close, near, far |
    | npc_health, player_health | 1 to 5 as codes 0 to 4 |
    | last_move | none, strike, shoot, hide, advance, back_off, guard: of the step before; none if unseen or in a new \
encounter |
    | last_seen | when the player left last: never, under 30 steps ago, under 150 steps ago, longer ago |
    | player_hidden | no, yes |
    | player | unknown, #1, #2, ...; only with `observe_entity`; unknown never occurs |

    `info` has `move` (the move seen in this step; none in the last step of an encounter, whatever happened),
    `situation` (in which it was made: distance, and whether the player was hidden) and `ending` of the encounter (none,
    killed, died, fled, agreed, parted), beside `decision_id`, `feedback`, `boundary`, `regime` and `action_mask`. For
    measurement, `env.unwrapped.audit()` has `type`, the hidden style in the order of the table above, and `visitor`,
    the index of the player.

    ## Rewards
    Every step costs .05, a scout .08. A hit pays its damage, as far as the player had health; a blow costs its harm. An
    encounter that ends pays besides:

    | Ending | When | Reward |
    | --- | --- | --- |
    | killed | the player has no health left | 2 |
    | died | the NPC has none left, and the player has | -4 |
    | fled | the NPC retreats from far | -.5 |
    | agreed | the player agrees to peace | 2 |
    | parted | by chance .04 in every step that ends in no other way | 0 |

    No outcome is delayed: both kinds of `feedback` pay the same, and `decision_id` is always -1. The exact mean reward
    of a step where all styles are alike frequent:

    | Rules | Random | Best fixed action (ambush) | Oracle |
    | --- | --- | --- | --- |
    | first | -.219 | -.016 | .663 |
    | second | -.239 | -.042 | .516 |

    ## Starting State
    The seed draws the style of every player, all styles alike, and the first player. Every encounter begins on one of
    the four terrains, near or far, the NPC with 4 or 5 health, all with the same chance; the player has 5 health and is
    visible.

    ## Episode End
    ### Termination
    Never.
    ### Truncation
    After `horizon` decisions.

    ## Arguments
    | Parameter | Type | Default | Description |
    | --- | --- | --- | --- |
    | `horizon` | int | 2000 | decisions in an episode, 1 to 1,000,000 |
    | `regime` | str or list | "none" | "none"; "shift" = "regulation", second rules from `shift_at` on; "periodic", \
first and second in turn, `shift_at` each; "drift", from `shift_at` on slowly; or a list of (step, level), \
with the first rules before its first step |
    | `shift_at` | int | None | step of the first change; by default half of the horizon, a fifth for \
"periodic" and "drift" |
    | `difficulty` | str | "medium" | how much there is to remember, see below |
    | `opponents` | array | None | chances of the moves strike, shoot, hide, advance, back_off, guard, of shape \
(styles, 4 terrains, 3 distances, 2 visible or hidden, 2 more than 1 health or not, 6), such as estimated from logs; \
an axis of size 1 stands for all its values; 1 to 64 styles. None = the five styles above |
    | `negotiation` | array | None | chance to agree, of shape (styles,) or (2 rules, styles); `opponents` \
need it; alone it changes the built-in styles |
    | `redraw_styles` | bool | False | whether players who are away at an entry of the regime's schedule \
get a style drawn anew |
    | `observe_entity` | bool | True | whether the player's number is observed |
    | `feedback` | str | "attributed" | "attributed" or "stream"; no difference here |
    | `capacity` | int | None | players that the state has room for; environments of one capacity share compiled \
functions, whatever their difficulty. None = as many as there are |
    | `render_mode` | str | None | "human", "ansi" or "rgb_array" |

    | Difficulty | Players | Popularity of player i | Style drawn anew at a visit | Returns | Moves seen |
    | --- | --- | --- | --- | --- | --- |
    | easy | 8 | 1 / (1 + .35 i) | .002 | .3 from among the last five | all |
    | medium | 12 | 1 / (1 + .35 i) | .01 | by popularity alone | all |
    | hard | 200 | 1 / (1 + .01 i) | .06 | mostly not within 60 encounters | .35 |

    ## Vectorized environment
    `gymnasium.make_vec` steps copies of this environment in one compiled call. `env.unwrapped.world` is made of pure
    JAX functions that can be jitted, vmapped and scanned, over parameters too.

    ## Oracles
    `oracle_action()` knows the style: exact average-reward values by policy iteration over 3,000 states, computed with
    the very thresholds that the dynamics draw with. `world.filter(solution)` is the honest bound: the exact posterior
    over the styles of all players from what the NPC sees, acting by Q-MDP, which never pays for information. The oracle
    knows the average of all styles alike; the players of one seed are another mixture, and may be easier.

    ## Version History
    * v0: first version

    ### Errata
    None.

    ## References
    * Littman, M. L., Cassandra, A. R., Kaelbling, L. P. (1995). Learning policies for partially observable
      environments: scaling up. ICML. (Q-MDP)
    * Puterman, M. L. (1994). Markov Decision Processes. Wiley. (average reward)
    * Bakkes, S. C. J., Spronck, P. H. M., van Lankveld, G. (2012). Player behavioural modelling for video games.
      Entertainment Computing 3(3).
    """

    def __init__(
        self,
        *,
        horizon: int = DEFAULT_HORIZON,
        regime: regimes.RegimeArgument = "none",
        shift_at: int | None = None,
        difficulty: str = DEFAULT_DIFFICULTY,
        opponents: ArrayLike | None = None,
        negotiation: ArrayLike | None = None,
        redraw_styles: bool = False,
        observe_entity: bool = True,
        feedback: FeedbackMode = "attributed",
        capacity: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        horizon = arguments.whole_number("horizon", horizon, 1, MAX_HORIZON)
        arguments.choice("difficulty", difficulty, tuple(DIFFICULTIES))
        arguments.choice("feedback", feedback, get_args(FeedbackMode))
        arguments.switch("observe_entity", observe_entity)
        arguments.switch("redraw_styles", redraw_styles)
        preset, see = DIFFICULTIES[difficulty]
        if capacity is not None:
            arguments.whole_number("capacity", capacity, preset.n, MAX_CAPACITY)
        world = game_world(
            preset,
            see=see,
            capacity=preset.n if capacity is None else capacity,
            schedule=regimes.schedule(regime, horizon, shift_at),
            opponents=behaviour_of(opponents, negotiation),
            redraw_styles=redraw_styles,
            observe_entity=observe_entity,
            feedback=feedback,
        )
        super().__init__(world, horizon=horizon, render_mode=render_mode)
