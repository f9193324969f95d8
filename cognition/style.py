"""Style: what an agent makes of the same memory. Configuration only, never learnt, never stored in an edge.

    S_a = G_a - (1 + risk) H_a
    U_a = S_a + curiosity * sd_a + caution * sd_best * [a is a deliberation action]

Ranges in which each parameter is monotone in its own metric and still useful were measured before they became presets:
risk in [-.5, 1] (more loss aversion, fewer risky actions), curiosity up to about .3, caution up to about .1. Caution is
a
bonus on actions that deliberate and never a lower confidence bound on all actions: a learner that avoids what it does
not know never finds out (measured: it does not recover from 300 punished steps).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Style:
    """How evidence becomes a decision.

    Attributes:
        risk: weight of expected loss beyond 1, at least -1 (losses ignored); positive = averse.
        curiosity: bonus per standard deviation of an action's evidence, at least 0.
        caution: bonus of deliberation actions per standard deviation of the best action's evidence, at least 0.
        exploration: factor on the initial rate of random actions while learning, at least 0.

    Raises:
        ValueError: a value outside its range.
    """

    risk: float = 0.0
    curiosity: float = 0.0
    caution: float = 0.0
    exploration: float = 1.0

    def __post_init__(self) -> None:
        for name, least in (("risk", -1.0), ("curiosity", 0.0), ("caution", 0.0), ("exploration", 0.0)):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value) and value >= least):
                raise ValueError(f"style `{name}` must be a finite number of at least {least:g}, got {value!r}.")


STYLES: Mapping[str, Style] = {
    "balanced": Style(),
    "cautious": Style(caution=0.05),
    "exploratory": Style(curiosity=0.2, exploration=2.0),
    "risk_averse": Style(risk=0.5),
    "risk_seeking": Style(risk=-0.5),
}


def style_of(style: str | Mapping[str, float] | Style) -> Style:
    """The style that a preset's name, a mapping of parameters or a `Style` stands for.

    Raises:
        ValueError: an unknown preset or parameter, or a value outside its range.
        TypeError: neither a name nor a mapping nor a `Style`.
    """
    if isinstance(style, Style):
        return style
    if isinstance(style, str):
        if style not in STYLES:
            raise ValueError(f"`style` must be one of {sorted(STYLES)}, a mapping or a Style, got {style!r}.")
        return STYLES[style]
    if not isinstance(style, Mapping):
        raise TypeError(f"`style` must be one of {sorted(STYLES)}, a mapping or a Style, got {style!r}.")
    known = [field.name for field in dataclasses.fields(Style)]
    if unknown := sorted(set(style) - set(known)):
        raise ValueError(f"`style` has the parameters {known}, got {unknown}.")
    return Style(**style)
