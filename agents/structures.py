"""From a world's declarations and an encoder to the structure of a learner, and the words for its nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cognition.config import Config
from ..cognition.learning import conjunctions, prototypes
from ..cognition.learning.knowledge import Knowledge
from ..cognition.structure import Behaviour, Structure, switches
from .declared import DeclaredSchema
from .features import FeatureEncoder

OWN_ACTION_KINDS = ("last action", "first action")


def structure_of(
    schema: DeclaredSchema | None,
    config: Config,
    encoder: FeatureEncoder,
    n_actions: int,
    *,
    share_scaled: bool,
    has_adviser: bool,
) -> Structure:
    """Shapes and code of the learner of an environment.

    Prototypes need entities and behaviours, which a schema declares; conjunctions and common edges are of codes.
    """
    owner, factor = list(range(n_actions)), [1.0] * n_actions
    deliberation = [False] * n_actions
    if schema is not None:
        labels = list(schema.actions)
        deliberation = [label in schema.deliberation for label in labels]
        for scaled in schema.scaled_actions if share_scaled else ():
            action = labels.index(scaled.action)
            owner[action], factor[action] = labels.index(scaled.of), float(scaled.factor)
    column_of = {action: column for column, action in enumerate(sorted(set(owner)))}
    coded = encoder.code_positions
    observed = [0, *(position for position, kind, _, _ in coded if kind == "context")]
    own = [encoder.n_active, encoder.n_active + 1] if config.encounter else []
    has_entity = any(kind == "entity" for _, kind, _, _ in coded)
    behaviours = behaviours_of(schema) if has_entity and config.prototypes else ()
    crossed_nodes = [0]
    for _, kind, first, n in coded:
        crossed_nodes += range(first, first + n) if kind == "context" else ()
    return Structure(
        n_context=encoder.n_nodes,
        n_base=encoder.n_active,
        columns=tuple(column_of[action] for action in owner),
        factors=tuple(factor),
        deliberation=tuple(deliberation),
        muted=() if config.entity else tuple(position for position, kind, _, _ in coded if kind == "entity"),
        common=tuple(observed + own) if config.common and config.bootstraps else (),
        encounter=config.encounter,
        advice=has_adviser,
        prototypes=config.prototypes if behaviours else 0,
        crossed=tuple(observed) if behaviours else (),
        crossed_nodes=tuple(crossed_nodes) if behaviours else (),
        n_entities=next((n for _, kind, _, n in coded if kind == "entity"), 1),
        behaviours=behaviours,
        paired=tuple(observed[1:] + own),
        **switches(config),  # type: ignore[arg-type]
    )


def behaviours_of(schema: DeclaredSchema | None) -> tuple[Behaviour, ...]:
    """Sizes of the declared tables of behaviour."""
    if schema is None:
        return ()
    size = {signal.name: len(signal.labels) for signal in schema.signals}
    return tuple(Behaviour(size[one.context], size[one.symbol]) for one in schema.behaviours)


class BehaviourReader:
    """Cells of `cognition.learning.prototypes` for what `info` says that an entity did."""

    def __init__(self, schema: DeclaredSchema | None, structure: Structure) -> None:
        self._tables: list[tuple[str, Mapping[str, int], str, Mapping[str, int], int, int]] = []
        if schema is None or not structure.behaviours:
            return
        codes = {signal.name: {label: i for i, label in enumerate(signal.labels)} for signal in schema.signals}
        firsts = prototypes.first_cells(structure)
        for one, table, first in zip(schema.behaviours, structure.behaviours, firsts, strict=True):
            self._tables.append(
                (one.symbol, codes[one.symbol], one.context, codes[one.context], first, table.n_symbols)
            )

    def cells(self, info: Mapping[str, Any]) -> list[int]:
        """One cell per table, -1 where nothing was seen."""
        found = []
        for symbol, symbols, context, contexts, first, n_symbols in self._tables:
            code = symbols.get(info.get(symbol, ""), 0)
            found.append(first + contexts[info[context]] * n_symbols + code if code else -1)
        return found


def node_words(
    structure: Structure,
    encoder: FeatureEncoder,
    actions: Sequence[str],
    known: Knowledge | None = None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Label and kind of every node; conjunctions and cases are named after what `known` holds."""
    labels, kinds = list(encoder.labels), list(encoder.kinds)
    if structure.encounter:
        for name in OWN_ACTION_KINDS:
            labels += [f"own {name} = {action}" for action in ("none", *actions)]
            kinds += ["own action"] * (len(actions) + 1)
    if structure.advice:
        labels += [f"adviser says {action}" for action in actions]
        kinds += ["advice"] * len(actions)
    for node in structure.crossed_nodes if structure.prototypes else ():
        for z in range(structure.prototypes):
            labels.append(f"prototype {z + 1}" if node == 0 else f"prototype {z + 1} & {labels[node]}")
            kinds.append("prototype")
    labels += _conjunction_labels(structure, labels, known)
    kinds += ["conjunction"] * structure.conjunctions
    labels += [f"case {i + 1}" for i in range(structure.cases)]
    kinds += ["case"] * structure.cases
    return tuple(labels), tuple(kinds)


def _conjunction_labels(structure: Structure, labels: Sequence[str], known: Knowledge | None) -> list[str]:
    pairs: npt.NDArray[np.int32] = np.full(structure.conjunctions, conjunctions.FREE, np.int32)
    if known is not None:
        pairs = np.asarray(known.conjunctions.pairs)
    found = []
    for slot, pair in enumerate(pairs.tolist()):
        if pair == conjunctions.FREE:
            found.append(f"conjunction {slot + 1}")
        else:
            one, other = conjunctions.parts(pair, structure)
            found.append(f"{labels[one]} & {labels[other]}")
    return found
