"""A decision with the evidence that made it.

The score of an action is a sum of one contribution per path, so the list of paths is not a story about the decision: it
is the decision. What else moves the choice, curiosity and caution, is named separately as `bonus`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .config import NO_ACTION
from .evidence import shares
from .memory import ANY_ACTION
from .stepping import Reading
from .structure import Structure
from .style import Style

# Two normal estimates with equal deviation s: P(first is better) = Phi(d / (sqrt(2) s)), which a logistic function of
# 1.702 d / (sqrt(2) s) matches within .01. Hence the temperature at which a softmax of two is that probability.
SHARE_TEMPERATURE = math.sqrt(2.0) / 1.702  # per standard deviation of the chosen action's evidence
LEAST_TEMPERATURE = 1e-3  # in units of the reward bound; keeps shares finite when nothing is uncertain any more
HEDGE_SHARE = 0.15  # an action whose share is below is no serious alternative
AVOID_CONFIDENCE = 0.9  # probability of a loss from which on an action is on the avoid list


@dataclasses.dataclass(frozen=True)
class Path:
    """One path from an observed node to a decision.

    Attributes:
        node: what the node stands for.
        decision: the action.
        activation: minimum activation along the path.
        gain_exc, gain_inh, loss_exc, loss_inh: strengths of the edge in [0, 1].
        uses: decisions that the edge took part in before.
        contribution: scale * activation * (net gain - (1 + risk) * net loss), what the path adds to the score.
    """

    node: str
    decision: str
    activation: float
    gain_exc: float
    gain_inh: float
    loss_exc: float
    loss_inh: float
    uses: int
    contribution: float

    @property
    def label(self) -> str:
        """Short name of the path: its node, since all paths of a decision end in it."""
        return self.node


@dataclasses.dataclass(frozen=True)
class Option:
    """An action beside the chosen one.

    Attributes:
        action, label: which.
        score: expected value, as of the choice.
        share: its share of the mutex group.
    """

    action: int
    label: str
    score: float
    share: float


@dataclasses.dataclass(frozen=True)
class Avoided:
    """An action that the memory warns of.

    Attributes:
        action, label: which.
        confidence: probability that its value is below 0, by its score and the uncertainty of it. Not a share: several
            actions may all be avoided with near certainty, or none.
        expected_loss: its evidence of loss.
    """

    action: int
    label: str
    confidence: float
    expected_loss: float


@dataclasses.dataclass(frozen=True)
class Reads:
    """State of the memory that a decision read.

    Attributes:
        step: steps lived.
        version: lessons learnt; two decisions with the same version read the same strengths.
    """

    step: int
    version: int


@dataclasses.dataclass(frozen=True)
class Decision:
    """What is chosen, how sure, what instead, what never, and why. Values are in units of the reward bound.

    Attributes:
        action: number of the chosen action.
        choice: its label.
        score: its expected value, with losses weighted by the style's risk; the sum of the evidence's contributions.
        deviation: standard deviation of the score's estimate.
        bonus: what curiosity and caution added to the score when the choice was made.
        share: share of the choice within its mutex group (all actions): a softmax of score + bonus, whose temperature
            is the choice's deviation, scaled so that between two equally uncertain actions the share is the probability
            that the chosen one is the better one. The shares of choice and alternatives sum to 1.
        alternatives: all other actions, best first.
        avoid: actions whose value is probably negative, most certain first.
        evidence: every path that was switched on, largest contribution first.
        rival: the paths to the alternative whose evidence is strongest either way, largest contribution first: what a
            choice without evidence of its own, such as to do nothing, was made against. Empty without alternatives.
        reads: state of the memory that was read.
        stake: what the case's outcomes are proportional to.
        factor: declared multiple of its base action's outcome that the choice stands for, 1 for most actions.
        style: how evidence was weighed.
    """

    action: int
    choice: str
    score: float
    deviation: float
    bonus: float
    share: float
    alternatives: tuple[Option, ...]
    avoid: tuple[Avoided, ...]
    evidence: tuple[Path, ...]
    rival: tuple[Path, ...]
    reads: Reads
    stake: float
    factor: float
    style: Style

    @property
    def hedges(self) -> tuple[Option, ...]:
        """Alternatives with a share of at least HEDGE_SHARE that are not on the avoid list, best first."""
        avoided = {one.action for one in self.avoid}
        return tuple(o for o in self.alternatives if o.share >= HEDGE_SHARE and o.action not in avoided)

    @property
    def against(self) -> tuple[Path, ...]:
        """Paths that speak against the choice, strongest first."""
        return tuple(path for path in reversed(self.evidence) if path.contribution < 0)

    def explain(self, n: int = 8) -> str:
        """The decision as text: what, how sure, why, what spoke against it, what instead.

        Args:
            n: paths to list, strongest first whether for or against; the rest appears as one sum.

        Raises:
            ValueError: `n` is negative.
        """
        if n < 0:
            raise ValueError(f"`n` must be at least 0, got {n}.")
        listed = sorted(self.evidence, key=lambda path: -abs(path.contribution))[:n]
        rest = [path for path in self.evidence if path not in listed]
        certainty = f"score {self.score:+.4f} ± {self.deviation:.4f}, share {self.share:.0%} of all actions"
        lines = [f"{self.choice}: {certainty}."]
        if abs(self.bonus) > 0:
            lines.append(f"  {self.bonus:+.4f} on top for curiosity or caution, not part of the score.")
        for title, sign in (("For it:", 1), ("Against it:", -1)):
            paths = [path for path in listed if path.contribution * sign > 0]
            lines += [title, *(_line(path) for path in paths)] if paths else []
        if not any(path.contribution for path in self.evidence) and any(path.contribution for path in self.rival):
            lines += self._of_rival(n)
        elif rest:
            count = f"{len(rest)} more path" + "s" * (len(rest) != 1)
            lines.append(f"Other considerations: {math.fsum(path.contribution for path in rest):+.4f} ({count})")
        lines.append(f"Sum: {math.fsum(path.contribution for path in self.evidence):+.4f} = score")
        if self.alternatives:
            others = (f"{o.label} {o.score:+.4f} ({o.share:.0%})" for o in self.alternatives)
            lines.append("Instead: " + ", ".join(others))
        if self.avoid:
            lines.append("Avoid: " + ", ".join(f"{a.label} (loses with {a.confidence:.0%})" for a in self.avoid))
        risk = 1.0 + self.style.risk
        loss = "loss" if risk == 1.0 else f"{risk:g} loss"
        scale = f" x stake {self.stake:.3g}" * (self.stake != 1.0) + f" x {self.factor:g}" * (self.factor != 1.0)
        lines.append(f"Each term is activation x (gain - {loss}){scale}, in units of the reward bound.")
        lines.append(f"Read after {self.reads.step} steps and {self.reads.version} lessons.")
        return "\n".join(lines)

    def _of_rival(self, n: int) -> list[str]:
        """What the choice was made against, where nothing speaks for or against itself."""
        ranked = sorted(self.rival, key=lambda path: -abs(path.contribution))
        score, rest = math.fsum(path.contribution for path in ranked), ranked[n:]
        over = next(path.decision for path in ranked if path.decision != ANY_ACTION)
        lines = [f"No path speaks for or against it. What it was chosen over, {over} ({score:+.4f}):"]
        lines += [_line(path) for path in ranked[:n]]
        if rest:
            left = math.fsum(path.contribution for path in rest)
            lines.append(f"  {left:+.4f}  in {len(rest)} more path" + "s" * (len(rest) != 1))
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The decision as plain values that `json.dumps` accepts, hedges and contradicting paths included."""
        plain = dataclasses.asdict(self)
        plain["hedges"] = [dataclasses.asdict(option) for option in self.hedges]
        plain["against"] = [dataclasses.asdict(path) for path in self.against]
        return plain


def decide(
    reading: Reading,
    *,
    structure: Structure,
    style: Style,
    labels: Sequence[str],
    actions: Sequence[str],
    mask: npt.NDArray[np.bool_] | None = None,
    action: int = NO_ACTION,
) -> Decision:
    """Put a decision together from what the memory says about one observation.

    Args:
        reading: evidence and edges of the observation.
        structure: shapes and shared columns.
        style: the style that `reading` was made with.
        labels: [N] what each node stands for.
        actions: [A] label of each action.
        mask: [A] bool, False for impossible actions, which are neither chosen nor alternatives.
        action: explain this action instead of the greedy one.
    """
    possible = np.ones(structure.n_actions, np.bool_) if mask is None else mask
    urge = np.where(possible, np.asarray(reading.evidence.urge, np.float64), -np.inf)
    stake = float(reading.paths.stake)
    deviation = np.asarray(reading.evidence.deviation, np.float64)
    chosen = int(np.argmax(urge)) if action == NO_ACTION else action
    share = _shares(urge, float(deviation[chosen]))
    paths = [
        _paths(reading, a, structure=structure, style=style, labels=labels, actions=actions)
        for a in range(structure.n_actions)
    ]
    # summed in double precision from the very strengths that were read; the compiled sum differs by rounding only
    score = [math.fsum(path.contribution for path in of_action) for of_action in paths]
    others = [a for a in np.argsort(-urge, kind="stable").tolist() if a != chosen and possible[a]]
    strongest = max(others, key=lambda a: abs(score[a]), default=None)
    losing = [(a, _probability_below_zero(score[a], float(deviation[a]))) for a in others]
    avoid = [
        Avoided(a, actions[a], confidence, float(reading.evidence.loss[a]))
        for a, confidence in losing
        if confidence >= AVOID_CONFIDENCE
    ]
    return Decision(
        action=chosen,
        choice=actions[chosen],
        score=score[chosen],
        deviation=float(deviation[chosen]),
        bonus=float(np.float64(reading.evidence.urge[chosen]) - np.float64(reading.evidence.score[chosen])),
        share=float(share[chosen]),
        alternatives=tuple(Option(a, actions[a], score[a], float(share[a])) for a in others),
        avoid=tuple(sorted(avoid, key=lambda one: -one.confidence)),
        evidence=_ranked(paths[chosen]),
        rival=() if strongest is None else _ranked(paths[strongest]),
        reads=Reads(int(reading.step), int(reading.version)),
        stake=stake,
        factor=structure.factors[chosen],
        style=style,
    )


def _ranked(paths: list[Path]) -> tuple[Path, ...]:
    return tuple(sorted(paths, key=lambda path: -path.contribution))


def _paths(
    reading: Reading,
    action: int,
    *,
    structure: Structure,
    style: Style,
    labels: Sequence[str],
    actions: Sequence[str],
) -> list[Path]:
    """The switched-on paths to one action, and from the same nodes to all actions at once."""
    column, width = structure.columns[action], structure.width
    net, uses = np.asarray(reading.net, np.float64), np.asarray(reading.uses)
    nodes, on = np.asarray(reading.paths.nodes), np.asarray(reading.paths.activation)
    scale = float(np.float32(reading.paths.stake)) * structure.factors[action]
    weight = on.astype(np.float64)
    if structure.rule == "beta":
        weight = np.asarray(shares(reading.paths.activation, reading.variance[:, : structure.n_columns]))[:, column]

    def path(i: int, label: str, at: int, n_uses: int, weight: npt.NDArray[Any]) -> Path:
        gain, loss = float(net[i, at]), float(net[i, at + width])
        return Path(
            node=labels[int(nodes[i])],
            decision=label,
            activation=float(on[i]),
            gain_exc=max(gain, 0.0),
            gain_inh=max(-gain, 0.0),
            loss_exc=max(loss, 0.0),
            loss_inh=max(-loss, 0.0),
            uses=n_uses,
            contribution=scale * float(weight[i]) * (gain - (1.0 + style.risk) * loss),
        )

    own = [path(i, actions[action], column, int(uses[i, column]), weight) for i in np.flatnonzero(on).tolist()]
    # common edges are summed under every rule
    common = [path(i, ANY_ACTION, structure.n_columns, int(uses[i].sum()), on) for i in structure.common if on[i] != 0]
    return own + common


def _shares(urge: npt.NDArray[np.float64], deviation: float) -> npt.NDArray[np.float64]:
    """[A] f64 in [0, 1] that sum to 1."""
    temperature = max(SHARE_TEMPERATURE * deviation, LEAST_TEMPERATURE)
    weight = np.exp((urge - urge.max()) / temperature)
    return np.asarray(weight / weight.sum())


def _probability_below_zero(score: float, deviation: float) -> float:
    """P(X < 0) for X normal; 1/2 where nothing is known (score 0) whatever the deviation."""
    return 0.5 * (1.0 + math.erf(-score / max(deviation * math.sqrt(2.0), LEAST_TEMPERATURE)))


def _line(path: Path) -> str:
    gain, loss = path.gain_exc - path.gain_inh, path.loss_exc - path.loss_inh
    on = "" if path.activation == 1 else f" x {path.activation:.2f}"
    of = " for any action" * (path.decision == ANY_ACTION)
    return (
        f"  {path.contribution:+.4f}  {path.node}{on}{of} (gain {gain:+.3f}, loss {loss:+.3f}, seen {path.uses} times)"
    )
