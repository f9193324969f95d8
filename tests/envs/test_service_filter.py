"""The exact solution and the filtering oracle of CustomerService, against slow references."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs import episode, visitors
from habitus.envs.contract import Seen
from habitus.envs.customer_service import CustomerServiceEnv, rules, solution

CLOSE = rules.CLOSE
DRIFT = 0.25
PERSONAS, CAUSES, TRUSTS = range(5), range(2), range(3)
TRUST, MOOD, REPLY, SURVEY = (rules.chances(t).tolist() for t in (rules.TRUST, rules.MOOD, rules.REPLY, rules.SURVEY))
SOLVED, EVENT, REPLIES = (rules.SOLVED / 65536).tolist(), (rules.EVENT / 65536).tolist(), rules.REPLY_OF_SLOT.tolist()


@functools.cache
def env(**arguments):
    return CustomerServiceEnv(**({"difficulty": "easy"} | arguments))


def few_customers(n):
    """Parameters with n customers who drift often."""
    arrivals = visitors.arrivals(visitors.Preset(n, DRIFT, 0.5, 0.0, 0), 12)
    return env(regime=((0, 0.0), (5, 0.7))).params._replace(arrivals=arrivals)


@functools.cache
def compiled():
    world = env().world
    reasoner = world.filter(world.solve(env(regime=((0, 0.0), (5, 0.7))).params))
    return (
        jax.jit(lambda key, params: episode.start(world, key, params)),
        jax.jit(lambda now, action, params: episode.step(world, now, action, params)),
        jax.jit(reasoner.initial),
        jax.jit(reasoner.update),
    )


def watched(seed, actions, params):
    """What an agent saw in an episode, with the belief of the filter after each step."""
    start, step, initial, update = compiled()
    now, observation = start(jax.random.key(seed), params)
    belief = initial(observation, params)
    seen, beliefs = [], [np.asarray(belief.ticket)]
    for number, action in enumerate(actions):
        level = int(params.regime_levels[int(np.sum(np.asarray(params.regime_steps) <= number)) - 1])
        now, outcome, following = step(now, jnp.int32(action), params)
        one = Seen(
            observation, jnp.int32(action), outcome, following, jnp.int32(number), jnp.int32(level), jnp.ones(9, bool)
        )
        belief = update(belief, one, params)
        seen.append(jax.tree.map(lambda leaf: np.asarray(leaf).item() if leaf.size == 1 else None, one))
        beliefs.append(np.asarray(belief.ticket))
        observation = following
    return seen, beliefs


def paths_of_a_step(one, persona, cause, mood, trust, solved):
    """Every course of a step that agrees with what was seen: (chance, mood, trust, solved) after it."""
    action, turn, level = one.action, one.observation["turn"], one.level
    signals, issue = one.outcome.signals, one.observation["issue"]
    stage = 0 if turn == 0 else 1 + trust
    cents = round(one.outcome.reward * 1000)
    for new_trust, solves, move in itertools.product(TRUSTS, (False, True), range(3)):
        if solved and solves:
            continue
        chance = TRUST[level][persona][action][stage][new_trust]
        if not solved:
            chance_to_solve = SOLVED[level][issue][cause][action][new_trust]
            chance *= chance_to_solve if solves else 1 - chance_to_solve
        chance *= MOOD[action][new_trust][2 if solved else int(solves)][move]
        new_mood, is_solved = min(max(mood + move - 1, 0), 3), int(solved or solves)
        happens = EVENT[persona][turn][int(action == CLOSE)][is_solved][new_trust][new_mood]
        if action != CLOSE:
            slots = zip(REPLY[persona][is_solved][new_trust], REPLIES[persona][is_solved][new_trust], strict=True)
            chance *= sum(likely for likely, reply in slots if reply == signals["answer"] - 1)
        ends = 1 - happens if action == CLOSE else happens
        if one.outcome.boundary:
            pays = rules.END_PAYS[int(action == CLOSE), is_solved, new_trust, new_mood] - rules.COST[level, action]
            chance *= ends * SURVEY[is_solved][new_trust][signals["survey"]] * (pays == cents)
        else:
            chance *= 1 - ends
            if action == CLOSE:
                new_mood, is_solved = max(new_mood - 1, 0), 0
        if chance > 0:
            yield chance, new_mood, new_trust, is_solved


def chance_of_seeing(observation, mood):
    """Chance of the seen mood."""
    seen, chance = observation["mood"], 0.0
    for move, likely in ((-1, 0.125), (0, 0.75), (1, 0.125)):
        chance += likely * (min(max(mood + move, 0), 3) == seen)
    return chance


def enumerated(steps, persona, first):
    """Chance of all that was seen in a ticket with each end of it, by listing every course: {hidden: chance}."""
    found = {}

    def follow(number, chance, cause, mood, trust, solved):
        if number == len(steps):
            hidden = (cause, mood, solved, trust)
            found[hidden] = found.get(hidden, 0.0) + chance
            return
        one = steps[number]
        for likely, new_mood, new_trust, is_solved in paths_of_a_step(one, persona, cause, mood, trust, solved):
            evidence = 1.0
            if not one.outcome.boundary:
                evidence = chance_of_seeing(one.following, new_mood)
                evidence *= one.following["detail"] in (0, 1 + cause)
            if evidence:
                follow(number + 1, chance * likely * evidence, cause, new_mood, new_trust, is_solved)

    for cause, mood in itertools.product(CAUSES, (1, 2)):
        follow(0, chance_of_seeing(first, mood) / 4, cause, mood, rules.UNDECIDED, 0)
    return found


def tickets_of(seen):
    """The steps cut into tickets; the last is not over."""
    tickets = [[]]
    for one in seen:
        tickets[-1].append(one)
        if one.outcome.boundary:
            tickets.append([])
    return tickets


def posterior(seen, before_first):
    """The belief [persona, cause, mood, solved, trust] by enumeration of everything hidden, customer by customer."""
    known = {}
    tickets = tickets_of(seen)
    for number, steps in enumerate(tickets):
        first = steps[0].observation if steps else seen[-1].following if seen else before_first
        fresh = rules.chances_below(5)
        customer = first["customer"]
        prior = (1 - DRIFT) * known.get(customer, fresh) + DRIFT * fresh
        by_persona = [enumerated(steps, persona, first) for persona in PERSONAS]
        joint = np.zeros((5, 2, 4, 2, 3))
        for persona in PERSONAS:
            for (cause, mood, solved, trust), chance in by_persona[persona].items():
                joint[persona, cause, mood, solved, trust] += prior[persona] * chance
        joint /= joint.sum()
        known[customer] = joint.sum(axis=(1, 2, 3, 4))
        if number == len(tickets) - 1:
            return joint
    raise AssertionError


@pytest.mark.parametrize("seed", range(6))
def test_the_belief_is_the_posterior_of_brute_force_enumeration(seed):
    actions = np.random.default_rng(seed).choice(9, size=7, p=(0.1, 0.1, 0.1, 0.15, 0.1, 0.1, 0.1, 0.05, 0.2))
    seen, beliefs = watched(seed, actions, few_customers(1 + seed % 2))
    assert seen[0].level == 0
    assert seen[-1].level == 7
    for number in range(1, len(seen) + 1):
        expected = posterior(seen[:number], seen[0].observation)
        np.testing.assert_allclose(beliefs[number], expected, atol=3e-6)


def test_the_enumerated_episodes_hold_every_kind_of_evidence():
    kinds = set()
    for seed in range(6):
        actions = np.random.default_rng(seed).choice(9, size=7, p=(0.1, 0.1, 0.1, 0.15, 0.1, 0.1, 0.1, 0.05, 0.2))
        seen, _ = watched(seed, actions, few_customers(1 + seed % 2))
        for one in seen:
            signals = one.outcome.signals
            kinds |= {("ending", signals["ending"]), ("detail", one.following["detail"] > 0)}
            kinds |= {("survey", signals["survey"] > 0), ("reopened", signals["answer"] == 1 + rules.REOPENED)}
    assert kinds == {("ending", code) for code in range(3)} | set(
        itertools.product(("detail", "survey", "reopened"), (False, True))
    )


def test_the_filter_that_forgets_believes_at_each_start_what_it_believed_at_first():
    world, params = env().world, env().params
    forgets = world.filter(world.solve(params), forgets=True)
    observation = {"mood": jnp.int32(1), "customer": jnp.int32(3)}
    belief = forgets.initial(observation, params)
    np.testing.assert_allclose(belief.ticket.sum(axis=(1, 2, 3, 4)), 0.2, atol=1e-4)
    assert belief.personas.size == 0
    hidden = env(observe_entity=False).world
    assert not hidden.filter(hidden.solve(params)).remembers
    with pytest.raises(ValueError, match="`solution` must be"):
        world.filter(None)


def test_a_redrawn_persona_is_believed_to_be_new():
    key = 4
    shift = ((0, 0), (40, 0))
    params = env(regime=shift, redraw_personas=True).params
    start, step, initial, update = compiled()
    arrivals = visitors.arrivals(visitors.Preset(2, 0.0, 0.5, 0.0, 0), 12)
    params = params._replace(arrivals=arrivals)
    now, observation = start(jax.random.key(key), params)
    belief, sure, after = initial(observation, params), [], []
    for number in range(80):
        action = (rules.ACTIONS.index("detailed"), CLOSE)[min(int(observation["turn"]), 1)]
        now, outcome, following = step(now, jnp.int32(action), params)
        one = Seen(
            observation, jnp.int32(action), outcome, following, jnp.int32(number), jnp.int32(0), jnp.ones(9, bool)
        )
        belief, observation = update(belief, one, params), following
        if bool(outcome.boundary):
            most = float(belief.ticket.sum(axis=(1, 2, 3, 4)).max())
            (sure if number < 39 else after).append((int(following["customer"]), most))
        if number == 39:
            present = int(following["customer"])
    assert max(most for _, most in sure) > 0.8
    away = [most for customer, most in after if customer != present]
    assert away[0] == pytest.approx(0.2, abs=1e-3)
    assert max(away[1:]) > 0.3  # and from then on they are known again


@pytest.mark.parametrize("level", [0, 4, 10])
def test_the_solution_fulfils_the_optimality_equation(level):
    solved = solution.solved((level,))
    assert float(solved.residual[0]) < 1e-9
    values = np.asarray(solved.values[0], np.float64).max(axis=1)
    start = solution.problem(level).start
    assert start.sum() == pytest.approx(1)
    assert start @ values == pytest.approx(0, abs=1e-5)
    known = {0: 0.4641, 10: 0.4266}
    assert float(solved.average[0]) == pytest.approx(known.get(level, float(solved.average[0])), abs=1e-4)


def test_backward_induction_finds_the_same_average():
    """A second way to the average: the value of a start falls with it and is 0 at the best, found by bisection."""
    problem = solution.problem(0)
    turn = np.arange(solution.N_STATES) % rules.N_TURNS
    order = [np.flatnonzero(turn == number) for number in range(rules.N_TURNS)]
    by_turn = turn[problem.rows // rules.N_ACTIONS]
    assert (turn[problem.next_states] == by_turn + 1).all()
    low, high = -3.0, 3.0
    while high - low > 1e-7:
        average = (low + high) / 2
        values = np.zeros(solution.N_STATES)
        for number in reversed(range(rules.N_TURNS)):
            of_turn = by_turn == number
            future = np.bincount(
                problem.rows[of_turn],
                problem.chances[of_turn] * values[problem.next_states[of_turn]],
                minlength=solution.N_STATES * rules.N_ACTIONS,
            ).reshape(-1, rules.N_ACTIONS)
            values[order[number]] = (problem.rewards + future - average)[order[number]].max(axis=1)
        low, high = (average, high) if problem.start @ values > 0 else (low, average)
    assert low == pytest.approx(float(solution.solved((0,)).average[0]), abs=1e-6)


def test_expected_rewards_and_transitions_are_those_of_the_dynamics():
    """27 states, each action in a first turn and twice elsewhere, 20,000 draws each.

    Limit: 4.5 standard errors for 81 comparisons, a false alarm below 6e-4.
    """
    world, rng = env().world, np.random.default_rng(0)
    params = env(regime=((0, 0.3),)).params
    solved, problem = world.solve(params), solution.problem(3)
    step = jax.jit(jax.vmap(world.step, in_axes=(None, None, 0, None)))
    state = world.initial(jax.random.key(0), params)
    keys = jax.random.split(jax.random.key(1), 20_000)
    for number in range(27):
        codes = [int(rng.integers(size)) for size in solution.SHAPE]
        if number < 9:
            codes[4:] = [0, rules.UNDECIDED, 0]
        persona, issue, cause, mood, solved_before, trust, turn = map(jnp.int32, codes)
        ticket = state.ticket._replace(
            issue=issue, cause=cause, mood=mood, is_solved=solved_before, trust=trust, turn=turn
        )
        types = jnp.full_like(state.known.types, persona)
        at_hand = state._replace(ticket=ticket, known=state.known._replace(types=types))
        action, row = number % 9, solution.state_index(*codes)
        after, outcome = step(at_hand, jnp.int32(action), keys, params)
        rewards, ends = np.asarray(outcome.reward), np.asarray(outcome.boundary)
        assert float(world.expected_rewards(at_hand, params, solved)[action]) == np.float32(
            problem.rewards[row, action]
        )
        error = rewards.std() / np.sqrt(len(rewards)) + 1e-6
        assert abs(rewards.mean() - problem.rewards[row, action]) < 4.5 * error
        chance = problem.ends[row, action]
        assert abs(ends.mean() - chance) < 4.5 * np.sqrt(chance * (1 - chance) / len(ends)) + 1e-9
        following = problem.rows == row * 9 + action
        if following.any() and chance < 1:
            best = np.asarray(solved.values[0]).max(axis=1)
            expected = problem.chances[following] @ best[problem.next_states[following]] / (1 - chance)
            ticket = jax.tree.map(lambda leaf, kept=~ends: np.asarray(leaf)[kept], after.ticket)
            hidden = (ticket.mood, ticket.is_solved, ticket.trust, ticket.turn)
            found = best[solution.state_index(codes[0], codes[1], codes[2], *hidden)]
            assert abs(found.mean() - expected) < 4.5 * found.std() / np.sqrt(len(found)) + 1e-5
