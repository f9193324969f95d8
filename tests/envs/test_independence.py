"""At the start of an encounter, what the pages call independent is so: cross-tables of all that is seen and hidden.

Every table is tested by its chi-square. One test in 10,000 of a right world would fail at other seeds: 1e-4 is shared
by all tables of a test.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import envs
from habitus.envs import episode, rollout
from habitus.envs.credit_review import synthetic_applicants as people
from scipy import stats

FALSE_ALARM = 1e-4
MIN_EXPECTED = 5  # of a cell: below it the chi-square distribution is a poor guide


@functools.cache
def environment(name):
    if name == "CreditReview":
        return envs.CreditReviewEnv(difficulty="hard", observe_group=True)
    return {"GameNPC": envs.GameNPCEnv, "CustomerService": envs.CustomerServiceEnv}[name]()


def facts_of(world, params, state, observation):
    return observation | {f"hidden {fact}": value for fact, value in world.audit(state, params).items()}


@functools.cache
def run(name, n_steps, n_episodes):
    """Facts of each decision under random play, [N, T] each: before it (observed, hidden) and after it (signals)."""
    world, params = environment(name).world, environment(name).params

    def one(key_words):
        key = jax.random.wrap_key_data(key_words)
        action_key, key = jax.random.split(key)

        def step(now, key):
            running, before = now
            action = jax.random.randint(key, (), 0, len(world.schema.actions), jnp.int32)
            running, outcome, observation = episode.step(world, running, action, params)
            return (running, facts_of(world, params, running.state, observation)), (
                before,
                outcome.signals,
                outcome.boundary,
            )

        running, observation = episode.start(world, key, params)
        start = running, facts_of(world, params, running.state, observation)
        return jax.lax.scan(step, start, jax.random.split(action_key, n_steps))[1]

    key_data = jnp.asarray(rollout.seeds_to_key_data(range(n_episodes)))
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(key_data))


def starts(name, n_steps, n_episodes):
    """[n] facts of each encounter at its start, and those of the last step of the encounter before it."""
    before, signals, ends = run(name, n_steps, n_episodes)
    ended = ends[:, :-1]
    at_start = {fact: values[:, 1:][ended] for fact, values in before.items()}
    earlier = {f"earlier {fact}": values[:, :-1][ended] for fact, values in (before | signals).items()}
    return at_start, earlier


@functools.cache
def first_starts(name, n_episodes):
    """[n] facts at the start of each episode, and its state."""
    world, params = environment(name).world, environment(name).params

    def one(key_words):
        running, observation = episode.start(world, jax.random.wrap_key_data(key_words), params)
        return facts_of(world, params, running.state, observation), running.state

    key_data = jax.random.key_data(jax.random.split(jax.random.key(9), n_episodes))
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(key_data))


def quarters(values):
    return np.searchsorted(np.quantile(values, [0.25, 0.5, 0.75]), values)


def cross_table(one, other):
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), 1)
    return table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]


def chance_of_table(one, other):
    """Chance of a table at least as uneven if both are independent; 1 where there is nothing to compare."""
    table = cross_table(one, other)
    if min(table.shape) < 2:
        return 1.0
    result = stats.chi2_contingency(table, correction=False)
    assert result.expected_freq.min() >= MIN_EXPECTED
    return result.pvalue


def assert_independent(pairs):
    """Args: pairs: (names, one, other) of codes."""
    pairs = list(pairs)
    assert len(pairs) > 3
    chances = {names: chance_of_table(one, other) for names, one, other in pairs}
    assert {names: chance for names, chance in chances.items() if chance < FALSE_ALARM / len(chances)} == {}


def assert_equally_likely(facts):
    """Args: facts: name -> (codes, the possible ones)."""
    for name, (codes, possible) in facts.items():
        counts = np.bincount(codes, minlength=max(possible) + 1)
        assert counts.sum() == counts[list(possible)].sum(), name
        assert stats.chisquare(counts[list(possible)]).pvalue > FALSE_ALARM / len(facts), name


def within(facts):
    return [((a, b), facts[a], facts[b]) for a, b in itertools.combinations(facts, 2)]


def between(some, others):
    return [((a, b), some[a], others[b]) for a in some for b in others if a != b]


def picked(facts, names):
    return {name: facts[name] for name in sorted(names)}


def of(facts, rows=slice(None), names=None):
    return {name: values[rows] for name, values in facts.items() if names is None or name in names}


GAME_FRESH = {"terrain": range(4), "distance": (1, 2), "npc_health": (3, 4)}
SERVICE_FRESH = {
    "issue": range(6),
    "hidden cause": range(2),
    "channel": range(2),
    "hidden mood": (1, 2),  # annoyed or calm
}


@pytest.mark.parametrize(("name", "fresh"), [("GameNPC", GAME_FRESH), ("CustomerService", SERVICE_FRESH)])
def test_the_start_of_an_encounter_tells_nothing_of_who_comes_or_of_what_was(name, fresh):
    at_start, earlier = starts(name, 400, 200)
    new = picked(at_start, fresh)
    assert_equally_likely({fact: (new[fact], possible) for fact, possible in fresh.items()})
    who = {"hidden type", "hidden visitor", "last_seen", "tier"} & set(at_start)
    entity = environment(name).schema.entity_field
    past = {fact: values for fact, values in earlier.items() if fact != f"earlier {entity}"}
    tables = within(new) + between(new, picked(at_start, who)) + between(new, past)
    # with neither hot visitors nor a gap, whoever comes does so whatever has been; pairs of visitors are too rare
    tables += between(picked(at_start, ["hidden visitor"]), of(past, names=set(past) - {"earlier hidden visitor"}))
    assert_independent(tables)
    others = set(at_start) - set(fresh) - who - {"mood", entity}
    assert all(len(np.unique(at_start[fact])) == 1 for fact in others), others
    assert chance_of_table(at_start["hidden visitor"], at_start["last_seen"]) < 1e-9  # what depends is found to


def test_the_mood_that_is_seen_depends_on_the_true_one_alone():
    at_start, earlier = starts("CustomerService", 400, 200)
    assert chance_of_table(at_start["mood"], at_start["hidden mood"]) < 1e-9
    others = picked(at_start, ["issue", "hidden cause", "channel", "hidden type", "tier", "last_seen"])
    tables = []
    for mood in (1, 2):
        given = at_start["hidden mood"] == mood
        tables += between({"mood": at_start["mood"][given]}, of(others | earlier, given))
    assert_independent(tables)


@pytest.mark.parametrize(("name", "fresh"), [("GameNPC", GAME_FRESH), ("CustomerService", SERVICE_FRESH)])
def test_the_first_encounter_of_an_episode_is_as_independent_of_all_visitors(name, fresh):
    first, state = first_starts(name, 8000)
    types = {f"type of #{number + 1}": state.known.types[:, number] for number in range(8)}
    assert_equally_likely({fact: (first[fact], possible) for fact, possible in fresh.items()})
    assert_equally_likely({fact: (values, range(5)) for fact, values in types.items()})
    assert_independent(within(picked(first, [*fresh, "hidden visitor"]) | types))


GROUP_FIELDS = ("income", "history", "region")  # what depends on the group
FREE = ("debt", "employment", "past_default", "amount", "purpose", "age")
ALIKE = {name: people.N_CODES[getattr(people, name.upper())] for name in FREE if name != "past_default"}
CASE = ("amount", "purpose", "hidden has_good_documents")  # of the application alone


def test_the_fields_of_a_new_applicant_tell_nothing_of_each_other_or_of_what_is_hidden():
    at_start, _ = starts("CreditReview", 400, 200)
    new = of(at_start, at_start["applicant"] == people.NEW_APPLICANT)
    new["effect"] = quarters(new["hidden effect"])
    hidden = ("effect", "hidden has_good_documents")
    assert_equally_likely({name: (new[name], range(n_codes)) for name, n_codes in ALIKE.items()})
    tables = within(picked(new, (*FREE, "group", *hidden)))
    for group in (0, 1):  # given the group its fields are independent too
        tables += within(picked(of(new, new["group"] == group), (*GROUP_FIELDS, *FREE, *hidden)))
    assert_independent(tables)
    assert all(chance_of_table(new[name], new["group"]) < 1e-9 for name in GROUP_FIELDS)  # what depends is found to


def test_an_application_tells_nothing_of_who_applies_or_of_what_was():
    at_start, earlier = starts("CreditReview", 400, 200)
    at_start["effect"], at_start["is new"] = quarters(at_start["hidden effect"]), (at_start["applicant"] == 0) * 1
    earlier["earlier effect"], earlier["earlier is new"] = (
        quarters(earlier["earlier hidden effect"]),
        (earlier["earlier applicant"] == 0) * 1,
    )
    rare = {"applicant", "hidden applicant", "hidden effect"}
    earlier = of(earlier, names=set(earlier) - {f"earlier {name}" for name in rare})
    case = picked(at_start, CASE)
    tables = within(case) + between(case, of(at_start, names=set(at_start) - set(CASE) - rare))
    assert_independent(tables + between(picked(at_start, (*CASE, "is new")), earlier))


PERSON = tuple(people.FIELDS[number].name for number in people.PERSON)


def fields_of_persons(packed):
    return {name: packed >> people.CODE_BITS * number & people.CODE_MASK for number, name in enumerate(PERSON)}


def test_what_returning_applicants_are_tells_nothing_of_their_effect():
    known = first_starts("CreditReview", 1000)[1].known
    persons = fields_of_persons(known.people[:100, 1:].ravel())
    persons["effect"] = quarters(known.effects[:100, 1:].ravel())
    tables = between(picked(persons, ["effect"]), picked(persons, PERSON))
    tables += within(picked(persons, {*FREE, "group"} & {*PERSON}))
    for group in (0, 1):
        tables += within(picked(of(persons, persons["group"] == group), {*PERSON, "effect"} - {"group"}))
    assert_independent(tables)
    assert all(chance_of_table(persons[name], persons["group"]) < 1e-9 for name in GROUP_FIELDS)


def test_returning_applicants_tell_nothing_of_each_other():
    known = first_starts("CreditReview", 1000)[1].known
    effects = {f"effect of #{number}": quarters(known.effects[:, number]) for number in range(1, 13)}
    tables = within(effects)
    for number in (1, 2):
        fields = fields_of_persons(known.people[:, number])
        others = {f"other's {name}": codes for name, codes in fields_of_persons(known.people[:, number + 1]).items()}
        tables += between(effects, fields) + between(fields, others)
    assert_independent(tables)
