"""Which random half of a step decides what: two outcomes that are independent must not share one.

A step is repeated with one half changed and all else as it was. What changes first, in the order in which one thing
causes another, hangs on that half; what follows from it may change too. The tables below are the rules of the pages.
"""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import envs
from habitus.envs import draws, visitors
from habitus.envs.arithmetic import INTEGERS, as_integers
from habitus.envs.credit_review import synthetic_applicants as people

ALL = 0xFFFF  # bits of a half


def influences(world, params, sources, parts, *, leaves, seed=0, n_steps=250, n_tries=4):
    """Source -> the parts that are the first to change when it alone does.

    Args:
        world: an integer world.
        params: its parameters, arrays.
        sources: name -> (half, mask of its bits).
        parts: state and outcome -> name -> value, causes before their consequences.
        leaves: parts from which nothing follows: where one changes first, no other part may change.
        seed: of the random actions and halves.
        n_steps: steps repeated.
        n_tries: changes of a source in a step.
    """
    rng = np.random.default_rng(seed)
    state, params = as_integers(jax.jit(world.initial)(jax.random.key(seed), params)), as_integers(params)
    n_actions, found = len(world.schema.actions), {name: set() for name in sources}
    for _ in range(n_steps):
        action, before = int(rng.integers(n_actions)), pickle.dumps(state)
        halves = rng.integers(0, ALL + 1, world.n_step_halves).tolist()

        def run(halves, action=action, before=before):
            after, outcome = world.advance(pickle.loads(before), action, halves, params, INTEGERS)
            return after, {**parts(after, outcome), "anything else": (after, outcome)}

        state, usual = run(halves)
        for name, (half, mask) in sources.items():
            for bits in {int(word) & mask for word in rng.integers(1, ALL + 1, n_tries)} | {mask}:
                _, changed = run([*halves[:half], halves[half] ^ bits, *halves[half + 1 :]])
                differing = [part for part in usual if part not in changed or changed[part] != usual[part]]
                found[name].update(differing[:1])
                if differing and differing[0] in leaves:
                    assert differing == [differing[0], "anything else"], f"{name} changes {differing}"
    return found


def numbered(names, first=0):
    return {name: (first + number, ALL) for number, name in enumerate(names)}


# GameNPC and CustomerService: who comes next. Four candidates, each a slot or its alias, one of the last five instead.
ARRIVAL = numbered([f"candidate {i}, {part}" for i in range(4) for part in ("slot", "alias")] + ["is hot", "hot one"])
RENEWAL = numbered(["is renewed", "renewed type"], first=len(ARRIVAL))


def coming(first, who):
    """Sources and influences of the last halves of a step, which decide who comes."""
    sources = {name: (first + half, mask) for name, (half, mask) in (ARRIVAL | RENEWAL).items()}
    return sources, {name: {who} for name in ARRIVAL} | {name: {"types"} for name in RENEWAL}


def busy_arrivals(capacity):
    """Visitors whose arrival depends on every half."""
    return visitors.arrivals(visitors.Preset(8, drift=0.5, slope=0.35, hot=0.3, gap=20), capacity)


SEEN_OF_MOVE = {"ending", "sight", "distance"}
RARE_OF_MOVE = {"hidden", "player_health", "npc_health", "reward"}  # the first to change once in hundreds of steps
GAME = {
    "hit": {"ending", "player_health", "reward"},
    "blow": {"ending", "npc_health", "reward"},
    "parting": {"ending"},
    "terrain": {"terrain"},
    "distance": {"next distance"},
    "health": {"next health"},
    "sight": {"sight"},
}


def game_parts(after, outcome):
    parts = {"ending": outcome.signals["ending"]}
    if not outcome.boundary:
        parts["sight"] = outcome.signals["move"], outcome.signals["situation"], after.last_move
        names = ("distance", "hidden", "player_health", "npc_health")
        parts |= {name: getattr(after, name) for name in names}
    parts["reward"] = outcome.reward
    if outcome.boundary:
        parts |= {"player": after.player, "terrain": after.terrain}
        parts |= {"next distance": after.distance, "next health": after.npc_health}
    return parts | {"types": after.known.types}


def test_every_half_of_game_npc_decides_what_the_page_says():
    env = envs.GameNPCEnv(capacity=12)
    params = env.params._replace(arrivals=busy_arrivals(12), see=jnp.int32(40_000))
    sources = numbered(["move", "alias of the move", "hit", "blow", "parting"])
    # one half serves the place of the next encounter by its low bits, or else whether the move is seen
    place = {"terrain": 3, "distance": 4, "health": 8, "sight": ALL - 15}
    sources |= {name: (5, mask) for name, mask in place.items()}
    arriving, arrival = coming(6, "player")
    leaves = {"terrain", "next distance", "next health", "types"}
    found = influences(env.world, params, sources | arriving, game_parts, leaves=leaves, n_steps=600)
    for name in ("move", "alias of the move"):
        assert SEEN_OF_MOVE <= found.pop(name) <= SEEN_OF_MOVE | RARE_OF_MOVE
    assert found == GAME | arrival


SERVICE = {
    "trust": {"ending", "trust", "reward"},
    "solved": {"ending", "is_solved", "reward"},
    "mood": {"ending", "mood", "reward"},
    "reply": {"answer"},
    "event": {"ending"},
    "survey": {"survey"},
    "issue": {"issue"},
    "cause": {"cause"},
    "channel": {"channel"},
    "next mood": {"next mood"},
    "unused": set(),
}


def service_parts(after, outcome):
    ticket, parts = after.ticket, {"ending": outcome.signals["ending"]}
    if not outcome.boundary:
        parts |= {"trust": ticket.trust, "is_solved": ticket.is_solved, "mood": ticket.mood}
    parts |= {"reward": outcome.reward, "answer": outcome.signals["answer"], "survey": outcome.signals["survey"]}
    if outcome.boundary:
        names = ("customer", "issue", "cause", "channel")
        parts |= {name: getattr(ticket, name) for name in names} | {"next mood": ticket.mood}
    return parts | {"types": after.known.types}


def test_every_half_of_customer_service_decides_what_the_page_says():
    env = envs.CustomerServiceEnv(capacity=40)
    params = env.params._replace(arrivals=busy_arrivals(40))
    sources = numbered(["trust", "solved", "mood", "reply", "event", "survey", "issue"])
    bits = {"cause": 1 << 15, "channel": 1 << 14, "next mood": 1 << 13, "unused": (1 << 13) - 1}
    sources |= {name: (7, mask) for name, mask in bits.items()}
    arriving, arrival = coming(8, "customer")
    leaves = {"answer", "survey", "issue", "cause", "channel", "next mood", "types"}
    assert influences(env.world, params, sources | arriving, service_parts, leaves=leaves) == SERVICE | arrival


PERSON = ("income", "debt", "employment", "history", "past_default")
CREDIT = {
    "loss": {"value"},
    "delay": {"listing"},
    "review": {"verdict"},
    "documents": {"documents"},
    "withdrawal": {"boundary"},
    "unused": set(),
    **{name: {name} for name in (*PERSON, "group", "age", "region")},
    "south": {"region"},
    "lower income": {"income"},
    "lower history": {"history"},
    "unused of the person": set(),
    "returns": {"applicant"},
    "who": {"applicant"},
    "amount": {"amount"},
    "purpose": {"purpose"},
    **{f"redraw {name}": {name} for name in PERSON},
    "quality": {"quality"},
    "unused bits": set(),
    "effect": {"effect"},
}


def credit_parts(after, outcome):
    case, parts = after.application, {"boundary": outcome.boundary, **outcome.signals}
    parts |= {"is pending": outcome.decision_id, "value": (outcome.reward, after.pending.values)}
    parts["listing"] = after.pending.calendar, after.pending.full
    if not outcome.boundary:
        return parts | {"documents": case.documents}
    fields = {field.name: getattr(case, field.name) for field in people.FIELDS if field.name != "group"}
    parts |= {"applicant": case.applicant, "group": case.group, **fields}
    return parts | {"quality": case.has_good_documents, "effect": (case.effect, after.known.effects)}


def test_every_half_of_synthetic_credit_decides_what_the_page_says():
    env = envs.CreditReviewEnv(capacity=80, observe_group=True)
    params = env.params._replace(arrivals=people.arrivals(returning=0.5, drift=0.3))
    sources = numbered(["loss", "delay", "review", "documents", "withdrawal", "unused", *PERSON, "group", "age"])
    sources |= numbered(
        ["region", "south", "lower income", "lower history", "unused of the person", "returns", "who"], len(sources)
    )
    sources |= numbered(["amount", "purpose"], len(sources))
    bits = len(sources)
    sources |= {f"redraw {name}": (bits, 1 << number) for number, name in enumerate(PERSON)}
    sources |= {"quality": (bits, 1 << 5), "unused bits": (bits, ALL - 63), "effect": (bits + 1, ALL)}
    leaves = {"value", "listing", "documents", *PERSON, "age", "region", "amount", "purpose", "quality", "effect"}
    found = influences(env.world, params, sources, credit_parts, leaves=leaves)
    assert bits + 2 == env.world.n_step_halves
    assert found == CREDIT


def table_parts(after, outcome):
    parts = {"boundary": outcome.boundary, **outcome.signals, "is pending": outcome.decision_id}
    parts |= {"value": (outcome.reward, after.pending.values), "row": after.row}
    return parts | {"listing": (after.pending.calendar, after.pending.full), "withheld": after.is_withheld}


def test_every_half_of_credit_from_a_table_decides_what_the_page_says(toy_table):
    world = envs.CreditReviewEnv(toy_table()).world
    sources = numbered(["delay", "review", "withheld", "unused"])
    found = influences(world, world.params, sources, table_parts, leaves={"listing", "withheld"})
    assert found == {"delay": {"listing"}, "review": {"verdict"}, "withheld": {"withheld"}, "unused": set()}


def test_the_seen_mood_hangs_on_one_half_of_its_own():
    world = envs.CustomerServiceEnv().world
    state, params = as_integers(jax.jit(world.initial)(jax.random.key(0), world.params)), as_integers(world.params)
    rng = np.random.default_rng(1)
    shown = [world.show(state, halves, params, INTEGERS) for halves in rng.integers(0, ALL + 1, (200, 2)).tolist()]
    differing = {name for name in shown[0] if len({one[name] for one in shown}) > 1}
    assert differing == {"mood"}
    unused = [world.show(state, [30_000, half], params, INTEGERS) for half in range(0, ALL, 1000)]
    assert all(one == unused[0] for one in unused)


def first_influences(monkeypatch, world, params, sources, names, parts, n_cases=500):
    """`influences` of the halves from which `World.initial` draws the first encounter; parts is state -> values."""
    n_halves, drawn = 1 + max(half for half, _ in sources.values()), draws.halves

    def initial(halves):
        monkeypatch.setattr(draws, "halves", lambda key, shape: halves if shape == (n_halves,) else drawn(key, shape))
        return parts(world.initial(jax.random.key(0), params))

    states, rng = jax.jit(jax.vmap(initial)), np.random.default_rng(2)
    halves = rng.integers(0, ALL + 1, (n_cases, n_halves), dtype=np.uint32)
    usual, found = states(halves), {name: set() for name in sources}
    for source, (half, mask) in sources.items():
        flips = np.zeros_like(halves)
        flips[:, half] = rng.integers(1, ALL + 1, n_cases, dtype=np.uint32) & np.uint32(mask)
        is_same = np.ones(n_cases, bool)
        for name, before, after in zip(names, usual, states(halves ^ flips), strict=True):
            differs = (np.asarray(before != after).reshape(n_cases, -1)).any(axis=1)
            if (is_same & differs).any():
                found[source].add(name)
            is_same &= ~differs
    return found


# The first to come is the first candidate: nobody is away for too short a time yet, and nobody came lately.
FIRST = {name: {"who"} if name.startswith("candidate 0") else set() for name in ARRIVAL} | {
    name: {"types"} for name in RENEWAL
}


def test_every_half_of_the_first_encounter_of_game_npc_decides_what_the_page_says(monkeypatch):
    env = envs.GameNPCEnv(capacity=12)
    arriving, _ = coming(2, "who")
    place = {"terrain": 3, "distance": 4, "health": 8, "unused": ALL - 15}
    sources = {name: (0, mask) for name, mask in place.items()} | arriving
    found = first_influences(
        monkeypatch,
        env.world,
        env.params._replace(arrivals=busy_arrivals(12)),
        sources,
        ("who", "terrain", "distance", "health", "types"),
        lambda state: (state.player, state.terrain, state.distance, state.npc_health, state.known.types),
    )
    own = {name: {name} for name in ("terrain", "distance", "health")}
    assert found == own | {"unused": set()} | FIRST


def test_every_half_of_the_first_ticket_of_customer_service_decides_what_the_page_says(monkeypatch):
    env = envs.CustomerServiceEnv(capacity=40)
    arriving, _ = coming(2, "who")
    bits = {"cause": 1 << 15, "channel": 1 << 14, "mood": 1 << 13, "unused": (1 << 13) - 1}
    sources = {"issue": (0, ALL)} | {name: (1, mask) for name, mask in bits.items()} | arriving
    own = ("issue", "cause", "channel", "mood")
    found = first_influences(
        monkeypatch,
        env.world,
        env.params._replace(arrivals=busy_arrivals(40)),
        sources,
        ("who", *own, "types"),
        lambda state: (state.ticket.customer, *(getattr(state.ticket, name) for name in own), state.known.types),
    )
    assert found == {name: {name} for name in own} | {"unused": set()} | FIRST


@pytest.mark.parametrize("world_class", [envs.GameNPCEnv, envs.CustomerServiceEnv])
def test_the_tables_above_leave_out_no_half(world_class):
    first = 6 if world_class is envs.GameNPCEnv else 8
    assert world_class().world.n_step_halves == first + len(ARRIVAL) + len(RENEWAL)
