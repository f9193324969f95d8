"""A world that a person can follow, and agents that learn, fail or die in it.

Three cases, three actions; the right action for case c is c and pays 1, a wrong one pays 0. The right one pays only
after DELAY steps.
"""

import os
import time

import gymnasium
import numpy as np
from habitus.envs.contract import Field, Schema

ID = "fake_world:habitus/Fake-v0"
DELAY = 5


def schema(feedback):
    return Schema(
        world="Fake",
        version=1,
        fields=(Field("case", labels=("red", "green", "blue")),),
        actions=("zero", "one", "two"),
        entity_field=None,
        stake_field=None,
        boundary="case",
        deliberation=(),
        scaled_actions=(),
        review=None,
        signals=(),
        sensitive=(),
        proxies=(),
        reward_bound=1.0,
        feedback=feedback,
        score_per="boundary",
    )


class FakeWorld(gymnasium.Env):
    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, horizon=100, feedback="attributed", colour="plain", render_mode=None):
        if colour not in ("plain", "striped"):
            raise ValueError(f"`colour` must be plain or striped, got {colour!r}.")
        self.observation_space = gymnasium.spaces.Dict({"case": gymnasium.spaces.Discrete(3)})
        self.action_space = gymnasium.spaces.Discrete(3)
        self.schema = schema(feedback)
        self.horizon, self.feedback = horizon, feedback

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.pending = 0, []
        self.case = self.draw()
        return {"case": np.int64(self.case)}, {"decision_id": -1, "feedback": [], "boundary": False, "regime": 0.0}

    def step(self, action):
        value = float(int(action) == self.case)
        reward, decision = 0.0, -1
        if value:
            decision = self.t
            self.pending.append((self.t + DELAY, decision, value))
            reward += value if self.feedback == "attributed" else 0.0
        self.t += 1
        arrived = [(d, v) for due, d, v in self.pending if due == self.t]
        if self.feedback == "stream":
            reward += sum(v for _, v in arrived)
        self.pending = [entry for entry in self.pending if entry[0] > self.t]
        self.case = self.draw()
        info = {"decision_id": decision, "feedback": arrived, "boundary": True, "regime": float(self.t > 30)}
        return {"case": np.int64(self.case)}, reward, False, self.t >= self.horizon, info

    def draw(self):
        """Not as `default_rng(seed).integers(3)` would: an agent with the world's seed must not know what comes."""
        return int(self.np_random.random() * 3)

    def expected_rewards(self):
        return np.eye(3)[self.case]

    def oracle_action(self):
        return self.case


gymnasium.register("habitus/Fake-v0", entry_point=FakeWorld)


class Bandit:
    """Averages per case; explains itself."""

    def __init__(self, env, *, seed=0, epsilon=0.2, credit="attributed"):
        self.rng = np.random.default_rng([seed, 7])
        self.epsilon, self.credit = epsilon, credit
        self.total, self.count = np.full((3, 3), 0.5), np.ones((3, 3))

    def begin(self, observation, info):
        pass

    def act(self, observation):
        if self.rng.random() < self.epsilon:
            return int(self.rng.integers(3))
        return self.greedy(observation)

    def greedy(self, observation):
        case = int(observation["case"])
        return int(np.argmax(self.total[case] / self.count[case]))

    def observe(self, transition):
        case = int(transition.observation["case"])
        self.total[case, transition.action] += transition.reward
        self.count[case, transition.action] += 1

    def decide(self, observation):
        return Decision(self, observation)


class Path:
    def __init__(self, node, contribution):
        self.node, self.contribution = node, contribution


class Decision:
    def __init__(self, agent, observation):
        case, number = int(observation["case"]), agent.greedy(observation)
        self.choice, self.action = ("zero", "one", "two")[number], number
        self.score = float(agent.total[case, number] / agent.count[case, number])
        self.evidence = [Path(f"case = {case}", self.score - 0.1), Path("bias", 0.1)]

    def explain(self):
        return f"I choose {self.choice} because it brought {self.score:.3f} before."


class OwnsLoop:
    """Steps the world itself, in chunks of 7 and with a seed of its own, as deep learners do."""

    def __init__(self, env, *, seed=0):
        self.env = env

    def learn(self, total_timesteps, callback=None):
        self.env.reset(seed=999)
        done, go_on = 0, True
        while done < total_timesteps and go_on:
            for _ in range(7):
                *_, truncated, _ = self.env.step(0)
                done += 1
                if callback is not None and callback(self, None) is False:
                    go_on = False
                if truncated:
                    self.env.reset()
        return self


class Crasher(Bandit):
    """Fails at step 20 of odd seeds."""

    def __init__(self, env, *, seed=0):
        super().__init__(env, seed=seed)
        self.seed, self.n = seed, 0

    def observe(self, transition):
        self.n += 1
        if self.n == 20 and self.seed % 2:
            raise RuntimeError("out of ideas")


class Quitter(Crasher):
    """Leaves at step 20 of odd seeds, and at once where it is told to."""

    def __init__(self, env, *, seed=0, at_once=False):
        super().__init__(env, seed=seed)
        if at_once:
            raise SystemExit(4)

    def observe(self, transition):
        self.n += 1
        if self.n == 20 and self.seed % 2:
            raise SystemExit(4)


class Killer(Crasher):
    """Takes its process with it at step 20 of odd seeds."""

    def observe(self, transition):
        self.n += 1
        if self.n == 20 and self.seed % 2:
            os._exit(3)


class Sleeper(Bandit):
    """Takes its time with all but two seeds while the environment asks for it, so that a study can be interrupted."""

    def __init__(self, env, *, seed=0):
        super().__init__(env, seed=seed)
        self.pause_s = float(os.environ.get("SLEEPER_S", "0")) if seed >= 2 else 0.0

    def act(self, observation):
        time.sleep(self.pause_s)
        return super().act(observation)
