"""Made-up episodes of schemas like those of the worlds, to draw without running a world."""

import numpy as np
from habitus.envs.contract import Behaviour, Field, Schema, Signal
from habitus.envs.rendering import History, Scene

HEALTH = ("1", "2", "3", "4", "5")
MOVES = ("none", "strike", "shoot", "hide", "advance", "back_off", "guard")
SEEN = ("never", "under 30 steps ago", "under 150 steps ago", "longer ago")
REPLIES = ("start", "thanks", "neutral", "money", "why", "human", "hurry", "reopened")


def schema(world, fields, actions, signals=(), behaviours=(), boundary="encounter", entity=None):
    return Schema(
        world=world,
        version=0,
        fields=fields,
        actions=actions,
        entity_field=entity,
        stake_field=None,
        boundary=boundary,
        deliberation=(),
        scaled_actions=(),
        review=None,
        signals=signals,
        sensitive=(),
        proxies=(),
        reward_bound=2.0,
        feedback="attributed",
        score_per="step",
        behaviours=behaviours,
    )


def labels_of(n):
    return ("unknown", *(f"#{number}" for number in range(1, n + 1)))


GAME = schema(
    "GameNPC",
    (
        Field("terrain", ("plain", "forest", "ruins", "hills")),
        Field("distance", ("close", "near", "far")),
        Field("npc_health", HEALTH),
        Field("player_health", HEALTH),
        Field("last_move", MOVES),
        Field("last_seen", SEEN),
        Field("player_hidden", ("no", "yes")),
        Field("player", labels_of(200)),
    ),
    ("attack", "shoot", "defend", "scout", "retreat", "ambush", "heal", "negotiate"),
    (
        Signal("move", MOVES),
        Signal("situation", ("none", "close, seen", "far, hidden")),
        Signal("ending", ("none", "killed", "died", "fled", "agreed", "parted")),
    ),
    (Behaviour("move", "situation"),),
    entity="player",
)
SERVICE = schema(
    "CustomerService",
    (
        Field("issue", ("setup", "delivery", "damage", "usage", "account", "invoice")),
        Field("detail", ("unknown", "cause a", "cause b")),
        Field("mood", ("angry", "annoyed", "calm", "pleased")),
        Field("turn", ("1", "2", "3", "4", "5", "6")),
        Field("reply", REPLIES),
        Field("channel", ("chat", "mail")),
        Field("tier", ("basic", "silver", "gold")),
        Field("last_seen", SEEN),
        Field("customer", labels_of(400)),
    ),
    ("template", "detailed", "apologise", "clarify", "discount", "refund", "replace", "escalate", "close"),
    (
        Signal("answer", ("none", *REPLIES)),
        Signal("exchange", ("none", "first detailed", "later close")),
        Signal("survey", ("none", "low", "middle", "high")),
        Signal("first_action", ("none", "detailed", "refund")),
        Signal("ending", ("none", "closed", "left")),
    ),
    (Behaviour("answer", "exchange"), Behaviour("survey", "first_action")),
    boundary="ticket",
    entity="customer",
)


def credit(n_numbers):
    """A credit world with numbers, some of them unknown, and a very long label."""
    long = "a category whose label is longer than any box of the form could ever be"
    fields = [Field("home", ("owner", "rent", long)), Field("applicant", labels_of(80))]
    for number in range(n_numbers):
        name = f"number_{number}_with_a_rather_long_name"
        fields += [
            Field(name, low=0.0, high=1e9, unit="units of money", status=f"{name}_status"),
            Field(f"{name}_status", ("known", "missing", "hidden")),
        ]
    return schema(
        "CreditReview",
        tuple(fields),
        ("approve", "reject", "manual_review", "request_document", "approve_reduced"),
        (Signal("verdict", ("none", "good", "bad")),),
        boundary="application",
        entity="applicant",
    )


CREDIT = credit(4)
LONG_CREDIT = credit(60)
OTHER = schema(
    "Somewhere",
    (*GAME.fields, *(Field(f"field_{number}", ("a label", "another, longer label é 中")) for number in range(40))),
    tuple(f"action_{number}" for number in range(24)),
    entity="player",
)
ALL = {"game": GAME, "service": SERVICE, "credit": CREDIT, "long credit": LONG_CREDIT, "other": OTHER}


def observation(of, rng, **labels):
    """A random observation, with some labels given."""
    seen = {}
    for field in of.fields:
        if field.name in labels:
            seen[field.name] = np.int64(field.labels.index(labels[field.name]))
        elif field.is_category:
            seen[field.name] = np.int64(rng.integers(len(field.labels)))
        else:
            seen[field.name] = rng.uniform(field.low, field.high, 1).astype(np.float32)
    return seen


def information(of, rng, *, boundary=False, decision=-1, feedback=(), text=None):
    """A random `info`; its signals tell an ending only at a boundary."""
    info = {"decision_id": decision, "feedback": list(feedback), "boundary": boundary, "regime": 0.3}
    info["action_mask"] = rng.uniform(size=len(of.actions)) < 0.8
    for signal in of.signals:
        code = int(rng.integers(1, len(signal.labels)))
        info[signal.name] = signal.labels[code if boundary or signal.name not in ("ending", "survey") else 0]
    return info if text is None else info | {"text": text}


def played(of, n_steps, *, seed=0, horizon=2000, text=None):
    """The scene after some random steps."""
    rng = np.random.default_rng(seed)
    history = History()
    history.begin(observation(of, rng), information(of, rng, text=text))
    for step in range(n_steps):
        action = of.actions[int(rng.integers(len(of.actions)))]
        boundary = step % 4 == 3
        feedback = [(step - 7, float(rng.normal()))] if of.world == "CreditReview" and step >= 7 else []
        info = information(
            of,
            rng,
            boundary=boundary,
            decision=step if of.world == "CreditReview" else -1,
            feedback=feedback,
            text=text,
        )
        history.add(action, float(rng.normal()), info, observation(of, rng))
    return Scene(of, history, horizon)
