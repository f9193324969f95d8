"""From an observation to the context nodes that it switches on.

Every learner of this folder sees an observation through this encoder, so that a comparison is one of learning and not
of feature engineering: `encode` gives the active nodes for the sparse learners, `dense` the same as one vector for
networks.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import gymnasium
import numpy as np
import numpy.typing as npt

from . import arguments
from .declared import DeclaredField, DeclaredSchema

Rank = Literal["signed", "poles", "none"]
UNIFORM_BINS = 8  # for a bounded number whose quantiles nobody declared


class Features(NamedTuple):
    """Nodes that an observation switches on.

    Attributes:
        nodes: [P] i32, node numbers; distinct, except that a switched-off path may repeat a node with activation 0.
        activation: [P] f32: 1 for an observed category; a rank lies in [-1, 1]; 0 switches the path off.
        stake: what outcomes are proportional to in this case, 1 where nothing is declared.
    """

    nodes: npt.NDArray[np.int32]
    activation: npt.NDArray[np.float32]
    stake: float


class _Category:
    """A field observed as a code: one node per code."""

    def __init__(self, first: int, n: int, off: int | None = None) -> None:
        self.first, self.n, self.off = first, n, off

    def activate(self, code: Any, index: list[int], value: list[float]) -> None:
        code = int(code)
        if not 0 <= code < self.n:
            raise ValueError(f"an observed code must lie in [0, {self.n}), got {code}.")
        index.append(self.first + code)
        value.append(0.0 if code == self.off else 1.0)


class _Number:
    """A number: one node per bin, and nodes that carry its rank."""

    def __init__(self, first: int, low: float, high: float, edges: Sequence[float], rank: Rank) -> None:
        self.first, self.edges, self.rank = first, list(edges), rank
        self.knots = [low, *self.edges, high]
        self.n_bins = len(self.edges) + 1
        self.n_rank = {"signed": 1, "poles": 2, "none": 0}[rank]

    def activate(self, number: float, index: list[int], value: list[float], *, is_known: bool = True) -> None:
        if is_known:
            slot = bisect.bisect_right(self.edges, number)
            left, right = self.knots[slot], self.knots[slot + 1]
            inside = min(max((number - left) / (right - left), 0.0), 1.0) if right > left else 0.5
            signed = 2.0 * (slot + inside) / self.n_bins - 1.0
        else:
            slot, signed = 0, 0.0
        index.append(self.first + slot)
        value.append(1.0 if is_known else 0.0)
        if self.rank == "signed":
            index.append(self.first + self.n_bins)
            value.append(signed)
        elif self.rank == "poles":
            index += (self.first + self.n_bins, self.first + self.n_bins + 1)
            value += (max(-signed, 0.0), max(signed, 0.0))


class FeatureEncoder:
    """Maps the observations of one environment to context nodes.

    Node 0 is the bias, always on. A category has a node per label. A number has a node per bin between its declared
    quantile edges (uniform bins of its bounds without a declaration) and, with `rank`, one node that carries 2 rank - 1
    ("signed") or two that carry its positive and negative part ("poles"); where its status is not "known", only the
    node of that status is on. The declared entity field has a node per entity, code 0 (unknown) is off. A declared
    stake gives a node with activation 1 / stake, which lets a flat fee be learnt beside outcomes that grow with the
    stake.

    Args:
        observation_space: Dict of Discrete and Box(1,) entries, Discrete, MultiDiscrete, MultiBinary, or a flat Box.
        schema: what the world declares, or None.
        rank: form of the rank nodes of numbers.
        masked: fields that the agent must not see, e.g. a sensitive field and its proxies.

    Attributes:
        labels: what each node stands for, e.g. "home = owner" or "90 <= income < 120".
        kinds: per node "bias", "context", "rank", "entity" or "inverse_stake".
        cells: observed field -> number of values it is told apart into: labels, or bins of a number.
        n_nodes: number of nodes N.
        n_active: number of paths P that every observation gives.

    Raises:
        TypeError: an entry of the space cannot be encoded, or `masked` is no sequence of names.
        ValueError: an unknown `rank` or masked field, or an unbounded number without declared edges.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        schema: DeclaredSchema | None = None,
        *,
        rank: Rank = "signed",
        masked: Sequence[str] = (),
    ) -> None:
        if rank not in get_args(Rank):
            raise ValueError(f"`rank` must be one of {list(get_args(Rank))}, got {rank!r}.")
        masked = arguments.names("masked", masked)
        self._rank: Rank = rank
        self._labels, self._kinds = ["bias"], ["bias"]
        self._stake_field = schema.stake_field if schema else None
        self._entity_field = schema.entity_field if schema else None
        declared = {field.name: field for field in schema.fields} if schema else {}
        self._is_dict = isinstance(observation_space, gymnasium.spaces.Dict)
        entries = self._entries(observation_space)
        if unknown := [name for name in masked if name not in entries]:
            raise ValueError(f"`masked` must name observed fields, got {unknown}; observed are {sorted(entries)}.")
        status_of = {field.status: field.name for field in declared.values() if field.status}
        self._categories: list[tuple[str, _Category]] = []
        self._numbers: list[tuple[str, _Number, str | None]] = []
        self.cells: dict[str, int] = {}
        for name, space in entries.items():
            if name in masked or status_of.get(name) in masked or name == self._stake_field:
                continue
            self._add(name, space, declared.get(name), is_status=name in status_of)
        if self._stake_field is not None:
            self._labels.append("1 / stake")
            self._kinds.append("inverse_stake")
        self.labels, self.kinds = tuple(self._labels), tuple(self._kinds)
        self.n_nodes = len(self.labels)
        self.n_active = (
            1 + len(self._categories) + sum(1 + n.n_rank for _, n, _ in self._numbers) + (self._stake_field is not None)
        )

    def encode(self, observation: Any) -> Features:
        """Active nodes of one observation.

        Raises:
            ValueError: a code outside its space, a known number or a stake that is NaN or infinite.
        """
        values = self._values(observation)
        index, value = [0], [1.0]
        for name, category in self._categories:
            category.activate(values[name], index, value)
        for name, number, status in self._numbers:
            is_known = status is None or int(values[status]) == 0
            observed = float(np.ravel(values[name])[0])
            if is_known and not math.isfinite(observed):
                raise ValueError(
                    f"`{name}` must be a finite number, got {observed}; replace missing numbers in a "
                    "gymnasium.wrappers.TransformObservation, or declare a status field that says that it is unknown."
                )
            number.activate(observed, index, value, is_known=is_known)
        stake = 1.0
        if self._stake_field is not None:
            stake = float(np.ravel(values[self._stake_field])[0])
            if not (math.isfinite(stake) and stake > 0):
                raise ValueError(f"the stake `{self._stake_field}` must be finite and positive, got {stake}.")
            index.append(self.n_nodes - 1)
            value.append(1.0 / stake)
        return Features(np.array(index, np.int32), np.array(value, np.float32), stake)

    def dense(self, observation: Any) -> npt.NDArray[np.float32]:
        """[N - 1] f32: the same as one vector; the bias is left out and the stake stands for its inverse."""
        features = self.encode(observation)
        vector = np.zeros(self.n_nodes, np.float32)
        np.add.at(vector, features.nodes, features.activation)
        if self._stake_field is not None:
            vector[-1] = features.stake
        return vector[1:]

    def dense_space(self) -> gymnasium.spaces.Box:
        """Space of `dense`."""
        bound = 1.0 if self._stake_field is None else 100.0
        return gymnasium.spaces.Box(-bound, bound, (self.n_nodes - 1,), np.float32)

    def _add(self, name: str, space: gymnasium.Space[Any], field: DeclaredField | None, *, is_status: bool) -> None:
        first = len(self._labels)
        if isinstance(space, gymnasium.spaces.Discrete):
            if space.start != 0:
                raise TypeError(f"`{name}` must be a Discrete space that starts at 0, got start {space.start}.")
            n = int(space.n)
            names = list(field.labels) if field and field.labels else [str(code) for code in range(n)]
            if len(names) != n:
                raise ValueError(f"`{name}` has {n} codes but the schema declares {len(names)} labels.")
            is_entity = name == self._entity_field
            # "known" says nothing that the number's own nodes do not say, so it is off
            self.cells[name] = n
            self._categories.append((name, _Category(first, n, off=0 if is_entity or is_status else None)))
            self._labels += [f"{name} = {label}" for label in names]
            self._kinds += ["entity" if is_entity else "context"] * n
            return
        if not isinstance(space, gymnasium.spaces.Box) or space.shape != (1,):
            raise TypeError(
                f"`{name}` must be Discrete or a Box of shape (1,), got {space}; flatten it with "
                "gymnasium.wrappers.FlattenObservation or encode it in an ObservationWrapper."
            )
        low, high = float(space.low[0]), float(space.high[0])
        edges = list(field.edges) if field else []
        if not edges:
            if not np.isfinite([low, high]).all() or abs(low) > 1e30 or abs(high) > 1e30:
                raise ValueError(
                    f"`{name}` is unbounded ({low}, {high}) and has no declared edges, so that it cannot be binned; "
                    "bound it with gymnasium.wrappers.TransformObservation first, e.g. by np.clip."
                )
            edges = [float(edge) for edge in np.linspace(low, high, UNIFORM_BINS + 1)[1:-1]]
        number = _Number(first, low, high, edges, self._rank)
        self.cells[name] = number.n_bins
        self._numbers.append((name, number, field.status if field else None))
        shown = [f"{edge:.4g}" for edge in edges]
        self._labels += [
            f"{name} < {shown[0]}",
            *(f"{left} <= {name} < {right}" for left, right in itertools.pairwise(shown)),
            f"{name} >= {shown[-1]}",
        ]
        self._kinds += ["context"] * number.n_bins
        ranks = {"signed": [f"{name}: rank"], "poles": [f"{name}: low", f"{name}: high"], "none": []}
        self._labels += ranks[self._rank]
        self._kinds += ["rank"] * number.n_rank

    def _entries(self, space: gymnasium.Space[Any]) -> dict[str, gymnasium.Space[Any]]:
        if isinstance(space, gymnasium.spaces.Dict):
            if not space.spaces:
                raise TypeError(f"`observation_space` must have at least one entry, got {space}; nothing is observed.")
            return dict(space.spaces)
        if isinstance(space, gymnasium.spaces.Discrete):
            return {"state": space}
        if isinstance(space, gymnasium.spaces.MultiDiscrete) and space.nvec.ndim == 1:
            if np.any(space.start != 0):
                raise TypeError(
                    f"`observation_space` must be a MultiDiscrete that starts at 0, got start {space.start}; "
                    "subtract it in a gymnasium.wrappers.TransformObservation."
                )
            return {f"x{i}": gymnasium.spaces.Discrete(int(n)) for i, n in enumerate(space.nvec)}
        if isinstance(space, gymnasium.spaces.MultiBinary) and len(space.shape) == 1:
            return {f"x{i}": gymnasium.spaces.Discrete(2) for i in range(space.shape[0])}
        if isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1:
            return {
                f"x{i}": gymnasium.spaces.Box(low, high, (1,), np.float32)
                for i, (low, high) in enumerate(zip(space.low, space.high, strict=True))
            }
        raise TypeError(
            f"`observation_space` must be Dict, Discrete, MultiDiscrete, MultiBinary or a flat Box, got {space}; "
            "flatten it with gymnasium.wrappers.FlattenObservation."
        )

    def _values(self, observation: Any) -> Mapping[str, Any]:
        if self._is_dict:
            return observation  # type: ignore[no-any-return]
        if np.ndim(observation) == 0:
            return {"state": observation}
        return {f"x{i}": x for i, x in enumerate(observation)}
