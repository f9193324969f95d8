"""What is said in CustomerService, as text: an agent that reads language gets words for what the observation shows.

The texts are data (`data/service-texts.yaml`, English and Chinese). They are checked against the labels of the world
when they are loaded, so that nothing is missing when it is needed. Which of several texts is used follows from a hash
of the step and of what is seen: the same episode reads the same everywhere, and nothing hidden shows in the choice.
"""

from __future__ import annotations

import functools
import hashlib
import string
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Annotated, Any

import pydantic

from ..envs import visitors
from ..envs.customer_service import rules
from .errors import TextsError
from .yaml_text import parse_yaml

FILE = "service-texts.yaml"
LANGUAGES = ("en", "zh")

Variants = Annotated[tuple[str, ...], pydantic.Field(min_length=1)]

LABELS: dict[str, tuple[str, ...]] = {
    "issue": rules.ISSUES,
    "detail": rules.DETAILS,
    "mood": rules.MOODS,
    "reply": rules.REPLIES,
    "channel": rules.CHANNELS,
    "tier": rules.TIERS,
    "last_seen": visitors.SEEN_LABELS,
}
"""Observed fields that the texts tell, with their labels."""
CUSTOMER = "customer"

_PLACES = {"matter", "explanation"}  # of what the desk writes
_FRAME_PLACES = {"text", "who", "plan"}


class _Data(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class Frame(_Data):
    """What stands around a customer's text, in one channel: in the first turn, and later."""

    first: Variants
    later: Variants


class AgentTexts(_Data):
    """What the desk writes, per action."""

    frame: dict[str, Variants]  # channel ->
    template: Variants
    detailed: Variants
    apologise: Variants
    clarify: Variants
    discount: Variants
    refund: Variants
    replace_: Variants = pydantic.Field(alias="replace")
    escalate: Variants
    close: Variants


class Texts(_Data):
    """All texts of one language.

    Attributes:
        separator: between two sentences.
        somebody: a customer whose number is not observed.
        number: a customer with number; `{label}` is the label of the field `customer`.
        tier: name of each tier.
        matter: each issue as a noun.
        frame: channel -> what stands around a customer's text: `{text}`, `{who}`, `{plan}`.
        opening: issue -> first sentence.
        seen: label of `last_seen` -> sentence of the first turn.
        mood: seen mood -> sentence.
        detail: issue -> cause -> sentence that answers the desk's question.
        reply: reply -> sentence.
        leaving: last sentence of a customer who leaves.
        survey: label of the signal -> remark.
        explanation: issue -> what a detailed answer says.
        agent: what the desk writes: `{matter}` is the issue, `{explanation}` the explanation of it.
    """

    separator: str
    somebody: str
    number: str
    tier: dict[str, str]
    matter: dict[str, str]
    frame: dict[str, Frame]
    opening: dict[str, Variants]
    seen: dict[str, Variants]
    mood: dict[str, Variants]
    detail: dict[str, dict[str, Variants]]
    reply: dict[str, Variants]
    leaving: Variants
    survey: dict[str, Variants]
    explanation: dict[str, Variants]
    agent: AgentTexts


class ServiceNarrator:
    """Tells a step of CustomerService (`habitus.envs.adapter.Narrate`).

    What it returns: `customer`, what stands before the agent now; and after a step `agent`, what the action said, and
    `farewell`, the last words of a customer whose ticket ended with it (empty if it goes on). At a reset `agent` and
    `farewell` are empty.

    Args:
        texts: of one language, checked by `check_texts`.
    """

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._agent = {name: getattr(texts.agent, "replace_" if name == "replace" else name) for name in rules.ACTIONS}

    def __call__(
        self,
        before: Mapping[str, Any] | None,
        action: int | None,
        info: Mapping[str, Any],
        after: Mapping[str, Any],
        step: int,
    ) -> dict[str, str]:
        """Texts of a step; arguments as in `Narrate`."""
        following = self._seen(after)
        agent = farewell = ""
        if before is not None and action is not None:
            at_hand = self._seen(before)
            agent = self._said_by_agent(at_hand, rules.ACTIONS[action], step)
            if info["boundary"]:
                farewell = self._farewell(at_hand, info, step)
        known_before = before is not None and not info["boundary"] and int(before["detail"]) != 0
        return {"agent": agent, "farewell": farewell, "customer": self._said(following, step, known_before)}

    def _seen(self, observation: Mapping[str, Any]) -> dict[str, str]:
        """Labels of an observation."""
        seen = {name: labels[int(observation[name])] for name, labels in LABELS.items()}
        if CUSTOMER in observation:
            seen[CUSTOMER] = f"#{int(observation[CUSTOMER])}"
        return seen

    def _said(self, seen: dict[str, str], step: int, known_before: bool) -> str:
        """The customer's turn. The cause is told once, in answer to the question."""
        texts, pick = self._texts, _Choice(step, seen)
        mood = pick("mood", texts.mood[seen["mood"]])
        if seen["reply"] == "start":
            sentences = [
                pick("opening", texts.opening[seen["issue"]]),
                pick("seen", texts.seen[seen["last_seen"]]),
                mood,
            ]
            frames = texts.frame[seen["channel"]].first
        else:
            told = [] if seen["detail"] == "unknown" or known_before else [self._cause(seen, pick)]
            sentences = [*told, pick("reply", texts.reply[seen["reply"]]), mood]
            frames = texts.frame[seen["channel"]].later
        who = texts.number.format(label=seen[CUSTOMER]) if CUSTOMER in seen else texts.somebody
        text = texts.separator.join(sentences)
        return pick("frame", frames).format(text=text, who=who, plan=texts.tier[seen["tier"]])

    def _cause(self, seen: dict[str, str], pick: _Choice) -> str:
        return pick("detail", self._texts.detail[seen["issue"]][seen["detail"]])

    def _said_by_agent(self, seen: dict[str, str], action: str, step: int) -> str:
        texts, pick = self._texts, _Choice(step, seen)
        text = pick(action, self._agent[action]).format(
            matter=texts.matter[seen["issue"]], explanation=pick("explanation", texts.explanation[seen["issue"]])
        )
        text = text[:1].upper() + text[1:]
        return pick("agent frame", texts.agent.frame[seen["channel"]]).format(text=text)

    def _farewell(self, seen: dict[str, str], info: Mapping[str, Any], step: int) -> str:
        """What a customer says who has left or whose ticket was closed, and how they answered the survey."""
        texts, pick = self._texts, _Choice(step, seen)
        sentences = [pick("survey", texts.survey[info["survey"]])]
        if info["ending"] == "left":
            sentences = [pick("reply", texts.reply[info["answer"]]), pick("leaving", texts.leaving), *sentences]
        return texts.separator.join(sentence for sentence in sentences if sentence)


class _Choice:
    """Picks one of several texts by a hash of the step, the place and what is seen."""

    def __init__(self, step: int, seen: Mapping[str, str]) -> None:
        self._begin = f"{step}/{'/'.join(seen.values())}/"

    def __call__(self, place: str, variants: Sequence[str]) -> str:
        word = hashlib.blake2b((self._begin + place).encode(), digest_size=4).digest()
        return variants[int.from_bytes(word, "big") % len(variants)]


def narrator(language: str) -> ServiceNarrator:
    """Narrator in one of LANGUAGES.

    Raises:
        TypeError, ValueError: `text` is no language that there are texts of.
    """
    expected = f"`text` must be None or one of {LANGUAGES}, got {language!r}"
    if not isinstance(language, str):
        raise TypeError(f"{expected} of type {type(language).__name__}.")
    if language not in LANGUAGES:
        raise ValueError(f"{expected}.")
    return ServiceNarrator(_built_in()[language])


@functools.cache
def _built_in() -> dict[str, Texts]:
    text = (resources.files(__package__) / "data" / FILE).read_text(encoding="utf-8")
    return parse_texts(text, FILE)


def parse_texts(text: str, file: str) -> dict[str, Texts]:
    """Checked texts per language.

    Args:
        text: contents of the file.
        file: its name, for messages.

    Raises:
        TableError: it is no YAML.
        TextsError: something is missing, empty or unknown; names the key.
    """
    data = parse_yaml(text, file)
    if not isinstance(data, dict) or not data:
        raise TextsError(file, "expected texts under the names of languages.")
    found = {}
    for language, texts in data.items():
        try:
            found[language] = Texts.model_validate(texts)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            key = ".".join([language, *map(str, first["loc"])])
            raise TextsError(file, f"{first['msg']}, got {first['input']!r}.", key=key) from error
        check_texts(found[language], file, language)
    return found


def check_texts(texts: Texts, file: str, language: str) -> None:
    """Checks that there is a text for every label of the world, and no other, and that places can be filled.

    Raises:
        TextsError: otherwise; names the key.
    """
    labels = {name: set(of_field) for name, of_field in LABELS.items()}
    causes = labels["detail"] - {"unknown"}
    wanted: dict[str, tuple[Mapping[str, Any], set[str]]] = {
        "tier": (texts.tier, labels["tier"]),
        "matter": (texts.matter, labels["issue"]),
        "frame": (texts.frame, labels["channel"]),
        "opening": (texts.opening, labels["issue"]),
        "seen": (texts.seen, labels["last_seen"]),
        "mood": (texts.mood, labels["mood"]),
        "detail": (texts.detail, labels["issue"]),
        **{f"detail.{issue}": (told, causes) for issue, told in texts.detail.items()},
        "reply": (texts.reply, labels["reply"] - {"start"}),
        "survey": (texts.survey, set(rules.SURVEYS)),
        "explanation": (texts.explanation, labels["issue"]),
        "agent.frame": (texts.agent.frame, labels["channel"]),
    }
    for key, (found, expected) in wanted.items():
        if set(found) != expected:
            raise TextsError(
                file, f"expected a text for each of {sorted(expected)}, got {sorted(found)}.", key=f"{language}.{key}"
            )
    for key, text, places in _with_places(texts):
        try:
            used = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
        except ValueError as error:
            raise TextsError(
                file, f"expected `{{` and `}}` only around a name: {error}.", key=f"{language}.{key}"
            ) from error
        if not used <= places or ("text" in places and "text" not in used):
            needs = " with `text` among them" if "text" in places else ""
            raise TextsError(
                file,
                f"expected places {sorted(places)}{needs}, got {sorted(used)} in {text!r}.",
                key=f"{language}.{key}",
            )


def _with_places(texts: Texts) -> list[tuple[str, str, set[str]]]:
    """(key, text, names that may stand in braces) of every text that is filled in."""
    found = [("number", texts.number, {"label"})]
    for channel, frame in texts.frame.items():
        found += [(f"frame.{channel}", text, _FRAME_PLACES) for text in (*frame.first, *frame.later)]
    for channel, frames in texts.agent.frame.items():
        found += [(f"agent.frame.{channel}", text, {"text"}) for text in frames]
    for name in type(texts.agent).model_fields:
        if name != "frame":
            found += [(f"agent.{name.rstrip('_')}", text, _PLACES) for text in getattr(texts.agent, name)]
    return found
