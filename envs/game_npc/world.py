"""Dynamics of GameNPC, written once for arrays and for Python integers (`habitus.envs.arithmetic`)."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .. import arguments, draws, regimes, visitors
from ..arithmetic import ARRAYS, INTEGERS, Arithmetic, Value, below, happens
from ..contract import NO_DECISION, Behaviour, FeedbackMode, Field, Outcome, Schema, Signal, Solution
from . import rules
from .belief import StyleFilter
from .opponents import Opponents, check_moves
from .rules import AGREED, CENTS, DIED, ENDING_CENTS, FLED, GOES_ON, KILLED, NEGOTIATE, PARTED
from .solution import position, solve

Array = jax.Array

MOVE_HALVES = 2
N_STEP_HALVES = MOVE_HALVES + 4 + visitors.N_HALVES
N_FIRST_HALVES = 2 + visitors.N_HALVES
MOVE_LABELS = ("none", *rules.MOVES)
UNSEEN = 0  # code of MOVE_LABELS
PLAYER = "player"

FIELDS = (
    Field("terrain", rules.TERRAINS),
    Field("distance", rules.DISTANCES),
    Field("npc_health", tuple(str(health) for health in range(1, rules.HEALTH + 1))),
    Field("player_health", tuple(str(health) for health in range(1, rules.HEALTH + 1))),
    Field("last_move", MOVE_LABELS),
    Field("last_seen", visitors.SEEN_LABELS),
    Field("player_hidden", ("no", "yes")),
)
MOVE = Signal("move", MOVE_LABELS)
SITUATION = Signal(
    "situation",
    ("none", *(f"{distance}, {seen}" for distance in rules.DISTANCES for seen in ("visible", "hidden"))),
)
ENDING = Signal("ending", rules.ENDINGS)


class GameParams(NamedTuple):
    """What may differ between runs of one compiled step."""

    regime_steps: Array  # [K] i32, see `regimes.Schedule`
    regime_levels: Array  # [K] i32
    redraws: Array  # [] i32, 1: a change of rules draws the styles of those who left before it anew
    arrivals: visitors.Arrivals
    see: Array  # [] i32, threshold of seeing a move
    moves: Array  # [S * 144 * 6] i32, see `opponents.Opponents`
    agrees: Array  # [(LEVELS + 1) * S * 2] i32


class GameState(NamedTuple):
    """Everything that changes in an episode."""

    step: Array  # [] i32, decisions made so far
    known: visitors.Visitors
    player: Array  # [] i32, index of the visitor at hand
    terrain: Array  # [] i32 codes from here on
    distance: Array
    npc_health: Array  # 1 to HEALTH
    player_health: Array  # 1 to HEALTH
    last_move: Array  # code of MOVE_LABELS
    hidden: Array  # 0 or 1


class Encounter(NamedTuple):
    """The part of the state that belongs to one encounter, see `GameState`."""

    player: Value
    terrain: Value
    distance: Value
    npc_health: Value
    player_health: Value
    last_move: Value
    hidden: Value


@dataclasses.dataclass(frozen=True)
class GameWorld:
    """World of returning players (`contract.World` and `contract.IntegerWorld`).

    Two worlds are equal when they compile to the same code; whatever else differs is in `params`.

    Attributes:
        capacity: players that the state has room for.
        n_styles: hidden styles of players.
        observe_entity: whether the player's number is observed.
    """

    capacity: int
    n_styles: int
    observe_entity: bool
    schema: Schema = dataclasses.field(compare=False, repr=False)
    params: GameParams = dataclasses.field(compare=False, repr=False)

    @property
    def n_step_halves(self) -> int:
        """Random halves of a step."""
        return N_STEP_HALVES

    @property
    def draws_apart(self) -> bool:
        """One draw serves a whole call."""
        return False

    @property
    def n_observe_halves(self) -> int:
        """Observing draws nothing."""
        return 0

    def initial(self, key: Array, params: GameParams) -> GameState:
        """State before the first decision; draws the styles of the players. `key` is consumed."""
        types_key, first_key = jax.random.split(key)
        halves = draws.halves(first_key, (N_FIRST_HALVES,)).astype(jnp.int32)
        known = visitors.nobody_yet(types_key, params.arrivals, self.n_styles)
        first = _arrival(known, params, halves[0], halves[2:], ARRAYS)
        known = visitors.arrive(
            known,
            params.arrivals,
            first.player,
            halves[-2:],
            redraws_before=0,
            n_types=self.n_styles,
            condition=jnp.asarray(True),
            arithmetic=ARRAYS,
        )
        as_arrays = [jnp.asarray(part, jnp.int32) for part in first]
        return GameState(jnp.zeros((), jnp.int32), known, *as_arrays)

    def advance(
        self, state: GameState, action: Value, halves: Value, params: GameParams, arithmetic: Arithmetic
    ) -> tuple[GameState, Outcome]:
        """One decision; `halves` are N_STEP_HALVES: the move, hit, blow, parting, place or sight, who comes next."""
        take, where, integer = arithmetic.take, arithmetic.where, arithmetic.integer
        move_half, slot_half, hit_half, blow_half, parting_half, place_half = (halves[i] for i in range(6))
        level = take(params.regime_levels, arithmetic.entry_at(params.regime_steps, state.step))
        style = take(state.known.types, state.player)
        low = integer(state.player_health <= rules.LOW_HEALTH)
        context = state.distance * 2 + state.hidden
        situation = state.terrain * 6 + context

        slot = below(move_half, rules.N_MOVES)
        packed = take(params.moves, ((style * rules.N_SITUATIONS + situation) * 2 + low) * rules.N_MOVES + slot)
        move = where(slot_half < (packed & rules.THRESHOLD_MASK), slot, packed >> rules.THRESHOLD_BITS)

        entry = ((level * rules.N_SITUATIONS + situation) * len(rules.ACTIONS) + action) * rules.N_MOVES + move
        tables = rules.fight_tables()
        packed = take(tables.blows, entry)
        agrees = take(params.agrees, (level * self.n_styles + style) * 2 + low)
        # who negotiates hits nobody: one half serves both
        agreed = (action == NEGOTIATE) & (state.hidden == 0) & (hit_half < agrees)
        fled = (packed >> rules.FLIGHT_BIT & 1) == 1
        damage = where(hit_half < take(tables.hits, entry), 1 + (packed >> rules.HARD_HIT_BIT & 1), 0)
        is_hurt = (blow_half < (packed & rules.THRESHOLD_MASK)) & (agreed ^ True)
        harm = where(is_hurt, 1 + (packed >> rules.HARD_BLOW_BIT & 1), 0)

        player_health = state.player_health - damage
        npc_health = state.npc_health + (packed >> rules.HEAL_BIT & 1) - harm
        killed = player_health <= 0
        died = (npc_health <= 0) & (killed ^ True)
        ending = where(happens(parting_half, rules.PARTING), PARTED, GOES_ON)
        ending = where(agreed, AGREED, where(fled, FLED, where(died, DIED, where(killed, KILLED, ending))))
        ended = ending != GOES_ON
        dealt = where(killed, state.player_health, damage)  # health below 0 does not count
        cents = take(ENDING_CENTS, ending) + rules.DAMAGE_CENTS * (dealt - harm)
        cents = cents - rules.PRICE_CENTS - rules.SCOUT_CENTS * (packed >> rules.SCOUT_BIT & 1)

        seen = happens(place_half, params.see) & (ended ^ True)
        shown = where(seen, move + 1, UNSEEN)
        at_hand = Encounter(
            state.player,
            state.terrain,
            packed >> rules.DISTANCE_BIT & 3,
            where(npc_health > rules.HEALTH, rules.HEALTH, npc_health),
            player_health,
            shown,
            packed >> rules.HIDDEN_BIT & 1,
        )
        arriving = halves[6:]
        # sight matters only if the encounter goes on, a place only if it does not: one half serves both
        following = arithmetic.choose(
            ended, lambda: _arrival(state.known, params, place_half, arriving, arithmetic), lambda: at_hand
        )
        known = visitors.leave(state.known, state.player, state.step, ended, arithmetic)
        changed = take(params.regime_steps, arithmetic.entry_at(params.regime_steps, state.step + 1))
        known = visitors.arrive(
            known,
            params.arrivals,
            following.player,
            arriving[visitors.N_HALVES - 2 :],
            redraws_before=changed * params.redraws,
            n_types=self.n_styles,
            condition=ended,
            arithmetic=arithmetic,
        )
        signals = {MOVE.name: shown, SITUATION.name: where(seen, context + 1, 0), ENDING.name: ending}
        return GameState(state.step + 1, known, *following), _outcome(cents, ended, signals, arithmetic)

    def show(self, state: GameState, halves: Value, params: GameParams, arithmetic: Arithmetic) -> dict[str, Value]:
        """Codes of the observed fields; nothing of it is random."""
        codes = {
            "terrain": state.terrain,
            "distance": state.distance,
            "npc_health": state.npc_health - 1,
            "player_health": state.player_health - 1,
            "last_move": state.last_move,
            "last_seen": visitors.last_seen(state.known, state.player, state.step, arithmetic),
            "player_hidden": state.hidden,
        }
        if self.observe_entity:
            codes[PLAYER] = state.player + 1
        return codes

    def mask(self, state: GameState, params: GameParams, arithmetic: Arithmetic) -> list[Value]:
        """Nobody can negotiate with a player who is hidden."""
        return [True] * NEGOTIATE + [state.hidden == 0]

    def step(self, state: GameState, action: Array, key: Array, params: GameParams) -> tuple[GameState, Outcome]:
        """One decision; `action` is [] i32 in [0, 8)."""
        return self.advance(state, action, draws.halves(key, (N_STEP_HALVES,)).astype(jnp.int32), params, ARRAYS)

    def observe(self, state: GameState, key: Array, params: GameParams) -> dict[str, Array]:
        """[] i32 codes of the observed fields. Nothing is noisy: `key` is not used."""
        return self.show(state, (), params, ARRAYS)

    def action_mask(self, state: GameState, params: GameParams) -> Array:
        """[8] bool: False for `negotiate` while the player is hidden."""
        return jnp.stack([jnp.asarray(allowed, jnp.bool_) for allowed in self.mask(state, params, ARRAYS)])

    def expected_rewards(self, state: GameState, params: GameParams, solution: Solution | None) -> Array:
        """[8] f32: expected reward of each action itself, the style known."""
        return self._of(state, params, _solved(solution), _solved(solution).rewards)

    def action_values(self, state: GameState, params: GameParams, solution: Solution | None) -> Array:
        """[8] f32: differential value of each action, the style known."""
        return self._of(state, params, _solved(solution), _solved(solution).values)

    def regime(self, state: GameState, params: GameParams) -> Array:
        """[] f32: regime of the coming decision."""
        return regimes.fraction(self._level(state, params))

    def audit(self, state: GameState, params: GameParams) -> dict[str, Array]:
        """The hidden style of the player at hand, and who it is: [] i32 each."""
        return {"type": state.known.types[state.player], "visitor": state.player}

    def check(self, params: GameParams) -> None:
        """Refuse params out of range, see `contract.ChecksParams`."""
        regimes.check(params.regime_steps, params.regime_levels)
        visitors.check(params.arrivals)
        arguments.entries("params.redraws", params.redraws, 0, 1)
        for name in ("see", "agrees"):
            arguments.entries(f"params.{name}", getattr(params, name), 0, draws.HALF_ONE)
        check_moves(params.moves)

    def solve(self, params: GameParams) -> Solution:
        """Exact values for the levels of the schedule, see `solution.solve`."""
        return solve(params.regime_levels, params.moves, params.agrees)

    def filter(self, solution: Solution | None, *, forgets: bool = False) -> StyleFilter:
        """The filtering oracle; without the players' numbers it cannot but forget."""
        return StyleFilter(_solved(solution), self.capacity, self.n_styles, forgets=forgets or not self.observe_entity)

    def _level(self, state: GameState, params: GameParams) -> Array:
        return regimes.level_at(params.regime_steps, params.regime_levels, state.step)

    def _of(self, state: GameState, params: GameParams, solution: Solution, table: Array) -> Array:
        style = state.known.types[state.player]
        at = position(style, state.terrain, state.distance, state.hidden, state.npc_health, state.player_health)
        return table[jnp.sum(solution.levels < self._level(state, params), dtype=jnp.int32), at]


def game_world(
    preset: visitors.Preset,
    *,
    see: float,
    capacity: int,
    schedule: regimes.Schedule,
    opponents: Opponents,
    redraw_styles: bool,
    observe_entity: bool,
    feedback: FeedbackMode,
) -> GameWorld:
    """World for arguments that `GameNPCEnv` has checked."""
    player = Field(PLAYER, ("unknown", *(f"#{number}" for number in range(1, capacity + 1))))
    schema = Schema(
        world="GameNPC",
        version=0,
        fields=(*FIELDS, *((player,) if observe_entity else ())),
        actions=rules.ACTIONS,
        entity_field=PLAYER if observe_entity else None,
        stake_field=None,
        boundary="encounter",
        deliberation=(rules.ACTIONS[rules.SCOUT],),
        scaled_actions=(),
        review=None,
        signals=(MOVE, SITUATION, ENDING),
        sensitive=(),
        proxies=(),
        reward_bound=rules.LARGEST_CENTS / CENTS,
        feedback=feedback,
        score_per="step",
        behaviours=(Behaviour(MOVE.name, SITUATION.name),),
    )
    params = GameParams(
        regime_steps=jnp.asarray(schedule.steps),
        regime_levels=jnp.asarray(schedule.levels),
        redraws=jnp.asarray(int(redraw_styles), jnp.int32),
        arrivals=visitors.arrivals(preset, capacity),
        see=jnp.asarray(draws.threshold(see), jnp.int32),
        moves=jnp.asarray(opponents.moves),
        agrees=jnp.asarray(opponents.agrees),
    )
    n_styles = len(opponents.agrees) // (2 * (regimes.LEVELS + 1))
    return GameWorld(capacity, n_styles, observe_entity, schema, params)


def _arrival(
    known: visitors.Visitors, params: GameParams, place_half: Value, halves: Value, arithmetic: Arithmetic
) -> Encounter:
    """The beginning of the next encounter: who comes, and where it takes place."""
    return Encounter(
        player=visitors.next_visitor(known, params.arrivals, halves, arithmetic),
        terrain=place_half & 3,
        distance=rules.NEAR + (place_half >> 2 & 1),
        npc_health=rules.HEALTH - (place_half >> 3 & 1),
        player_health=rules.HEALTH,
        last_move=UNSEEN,
        hidden=0,
    )


def _outcome(cents: Value, ended: Value, signals: dict[str, Value], arithmetic: Arithmetic) -> Outcome:
    """Nothing of an outcome is delayed: no decision is open, and none is listed."""
    constants: Any = (False, NO_DECISION, [], [])
    if arithmetic is not INTEGERS:
        constants = (
            jnp.zeros((), jnp.bool_),
            jnp.full((), NO_DECISION, jnp.int32),
            jnp.zeros(0, jnp.int32),
            jnp.zeros(0, jnp.float32),
        )
    terminated, decision_id, feedback_id, feedback_value = constants
    reward = arithmetic.money(cents, CENTS)
    return Outcome(reward, terminated, ended, decision_id, feedback_id, feedback_value, signals)


def _solved(solution: Solution | None) -> Solution:
    if solution is None:
        raise ValueError("`solution` must be what `solve(params)` returns, got None; values of GameNPC need it.")
    return solution
