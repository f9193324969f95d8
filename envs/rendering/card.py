"""A card of text that a person can read: the case at hand and what came of earlier decisions."""

from __future__ import annotations

from .scene import Event, Scene, signed, words

WIDTH = 64  # characters of a rule
N_ARRIVALS = 6  # latest outcomes shown


def text(scene: Scene) -> str:
    """The scene as lines of text, the last one without a line feed."""
    history, rule = scene.history, "-" * WIDTH
    rows = scene.rows()
    width = max(len(name) for name, _ in rows)
    lines = [rule, title(scene)]
    if scene.regime is not None:
        lines.append(regime_line(scene.regime))
    lines += [rule, *(f"  {name:<{width}}  {value}" for name, value in rows)]
    if impossible := impossible_actions(scene):
        lines.append(f"impossible now: {', '.join(impossible)}")
    lines += [rule, f"last decision: {decision_line(scene.last)}"]
    spoken = scene.last.text if scene.last is not None else history.first_text
    lines += [f"  {speaker}: {said}" for speaker, said in spoken.items()]
    lines += [f"  {line}" for line in arrival_lines(scene)]
    return "\n".join([*lines, summary(scene), rule])


def title(scene: Scene) -> str:
    """What is decided, and how far the episode is."""
    return f"{scene.schema.world}: {words(scene.schema.boundary)} for decision {scene.decision} of {scene.horizon}"


def regime_line(regime: float) -> str:
    """The rules of the last decision, in words."""
    return f"regime {regime:.1f} (0 = first rules, 1 = second rules)"


def decision_line(event: Event | None) -> str:
    """What was done last and what it brought at once."""
    if event is None:
        return "none yet"
    signals = [f"{words(name)}: {words(label)}" for name, label in event.signals.items()]
    return ", ".join([f"{words(event.action)} -> reward {signed(event.reward)}", *signals])


def arrival_lines(scene: Scene) -> list[str]:
    """Delayed outcomes, newest last."""
    return [
        f"decision {decision + 1} ({words(action)}) brought {signed(value)}"
        for decision, action, value in list(scene.history.arrivals)[-N_ARRIVALS:]
    ]


def impossible_actions(scene: Scene) -> list[str]:
    """Actions that the mask excludes now, in words."""
    return [words(label) for code, label in enumerate(scene.schema.actions) if not scene.is_possible(code)]


def summary(scene: Scene) -> str:
    """Sum of rewards and what is still to come."""
    history = scene.history
    line = f"sum of rewards {signed(history.total)} after {history.n_made} decisions"
    if history.n_waiting:
        line += f", {history.n_waiting} outcome{'s' * (history.n_waiting != 1)} still to arrive"
    return line
