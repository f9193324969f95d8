import itertools

import numpy as np
import pytest
from habitus.envs import planning


def random_problem(seed, n_states=4, n_actions=3):
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.ones(n_states + 1), size=n_states * n_actions)
    rows = np.repeat(np.arange(n_states * n_actions), n_states)
    return planning.Problem(
        rewards=rng.normal(size=(n_states, n_actions)),
        rows=rows,
        next_states=np.tile(np.arange(n_states), n_states * n_actions),
        chances=chances[:, :n_states].ravel(),
        ends=chances[:, n_states].reshape(n_states, n_actions),
        start=rng.dirichlet(np.ones(n_states)),
    )


def average_of(problem, policy):
    """Mean reward of a policy by the stationary distribution of its chain, ends leading to the start."""
    n_states, n_actions = problem.rewards.shape
    moves = problem.chances.reshape(n_states, n_actions, n_states) + problem.ends[..., None] * problem.start
    states = np.arange(n_states)
    chain = moves[states, policy]
    system = np.vstack([chain.T - np.eye(n_states), np.ones(n_states)])
    stationary = np.linalg.lstsq(system, np.r_[np.zeros(n_states), 1], rcond=None)[0]
    return stationary @ problem.rewards[states, policy]


@pytest.mark.parametrize("seed", range(5))
def test_no_policy_earns_more_than_the_plan(seed):
    problem = random_problem(seed)
    plan = planning.solve(problem)
    best = max(average_of(problem, list(policy)) for policy in itertools.product(range(3), repeat=4))
    assert plan.average == pytest.approx(best, abs=1e-10)
    assert average_of(problem, plan.values.argmax(axis=1)) == pytest.approx(best, abs=1e-10)


def test_the_optimality_equation_holds_and_starts_are_worth_nothing():
    problem = random_problem(9)
    plan = planning.solve(problem)
    best = plan.values.max(axis=1)
    following = (problem.chances.reshape(4, 3, 4) * best).sum(axis=2)
    assert plan.values == pytest.approx(problem.rewards - plan.average + following, abs=1e-9)
    assert problem.start @ best == pytest.approx(0, abs=1e-9)
    assert plan.residual < 1e-9


def test_a_chain_by_hand():
    # One state, two actions: end now for 1, or end in half of the steps for .8 a step. Ending now earns 1 a step.
    problem = planning.Problem(
        rewards=np.array([[1.0, 0.8]]),
        rows=np.array([1]),
        next_states=np.array([0]),
        chances=np.array([0.5]),
        ends=np.array([[1.0, 0.5]]),
        start=np.array([1.0]),
    )
    plan = planning.solve(problem)
    assert plan.average == pytest.approx(1.0)
    assert plan.values == pytest.approx(np.array([[0.0, -0.2]]))


def test_chances_that_do_not_sum_to_one_are_refused():
    problem = random_problem(0)
    with pytest.raises(ValueError, match="chances of row 2 must sum to 1"):
        planning.solve(problem._replace(ends=problem.ends + np.eye(4, 3)[:, ::-1] * 0.1 * (np.arange(4) == 0)[:, None]))
