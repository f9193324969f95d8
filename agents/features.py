"""From an observation to the context nodes that it switches on.

Every learner of this folder sees an observation through this encoder, so that a comparison is one of learning and not
of feature engineering: `encode` gives the active nodes for the sparse learners, `dense` the same as one vector for
networks, `pure` the same as `encode` inside compiled code. The parts are in `encoding/`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

import gymnasium
import numpy as np
import numpy.typing as npt

from . import arguments
from .declared import DeclaredSchema
from .encoding import UNIFORM_BINS, BoxCode, Options, Rank, VectorCodes, at, compiled, lay_out, number_of

__all__ = ["BoxCode", "FeatureEncoder", "Features", "Rank"]


class Features(NamedTuple):
    """Nodes that an observation switches on.

    Attributes:
        nodes: [P] i32, node numbers; distinct, except that a switched-off path may repeat a node with activation 0.
        activation: [P] f32: 1 for an observed category; a rank lies in [-1, 1]; 0 switches the path off.
        stake: what outcomes are proportional to in this case, 1 where nothing is declared; [] f32 from `pure`.
    """

    nodes: npt.NDArray[np.int32]
    activation: npt.NDArray[np.float32]
    stake: float


class FeatureEncoder:
    """Maps the observations of one environment to context nodes.

    Node 0 is the bias, always on. A code has a node per value. A number has, by `box`,

    - "uniform": a node per bin between its declared quantile edges (bins of equal width without a declaration) and,
      with `rank`, one node that carries 2 rank - 1 ("signed") or two that carry its positive and negative part
      ("poles"); where its status is not "known", only the node of that status is on;
    - "tiles": a tile in each of eight displaced grids over all numbers (`encoding.tile_coding`);
    - "random": a tile in each of many random grids over a few numbers each (`encoding.random_grids`);
    - "auto": "uniform" where a schema is declared, else "tiles" for up to six numbers and "random" for more.

    Numbers with declared edges are always in bins. The declared entity field has a node per entity, code 0 (unknown) is
    off. A declared stake gives a node with activation 1 / stake, which lets a flat fee be learnt beside outcomes that
    grow with the stake. `joint` adds a node per combination of all codes, for what single values cannot tell.

    Args:
        observation_space: Discrete, MultiDiscrete, MultiBinary, Box, or a Dict or Tuple of them. Nested names are
            joined by ".", positions in an array or a tuple are x0, x1, ...; a uint8 array of shape (h, w, 3) is a
            symbolic grid (kind, colour and state of each cell).
        schema: what the world declares, or None.
        rank: form of the rank nodes of numbers in bins.
        masked: fields, or whole entries, that the agent must not see, e.g. a sensitive field and its proxies.
        box: how numbers without declared edges are coded.
        joint: add nodes of combinations; None: where nothing is declared and two or more codes have at most 20,000
            combinations.
        scales: half-width of the interval around 0 in which a number is told apart best, by name, e.g. {"x1": 3.0}; by
            default 3 for a number without bounds, the bounds for the others. See `encoding.Intervals`.
        n_bins: bins or tiles of equal width along that interval.
        seed: of random grids and of hashes.

    Attributes:
        labels: what each node stands for, e.g. "home = owner" or "90 <= income < 120".
        kinds: per node "bias", "context", "rank", "tile", "joint", "entity" or "inverse_stake".
        cells: observed field -> number of values it is told apart into: codes, bins or tiles.
        n_nodes: number of nodes N.
        n_active: number of paths P that every observation gives.

    Raises:
        TypeError: an entry of the space cannot be encoded, or an argument is of another type.
        ValueError: an unknown `rank`, `box` or name, a scale out of range, or too many combinations.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        schema: DeclaredSchema | None = None,
        *,
        rank: Rank = "signed",
        masked: Sequence[str] = (),
        box: BoxCode = "auto",
        joint: bool | None = None,
        scales: Mapping[str, float] | None = None,
        n_bins: int = UNIFORM_BINS,
        seed: int = 0,
    ) -> None:
        for name, value, known in (("rank", rank, get_args(Rank)), ("box", box, get_args(BoxCode))):
            if value not in known:
                raise ValueError(f"`{name}` must be one of {list(known)}, got {value!r}.")
        if joint is not None:
            arguments.switches(joint=joint)
        options = Options(
            rank=rank,
            masked=arguments.names("masked", masked),
            box=box,
            joint=joint,
            scales=dict(scales or {}),
            n_bins=arguments.whole_number("n_bins", n_bins, 2),
            seed=arguments.whole_number("seed", seed, 0),
        )
        self._layout = layout = lay_out(observation_space, schema, options)
        self.labels, self.kinds, self.cells = layout.labels, layout.kinds, layout.cells
        self.n_nodes, self.n_active = len(layout.labels), layout.n_active
        entity = schema.entity_field if schema and schema.entity_field not in options.masked else None
        self._entity = next((code for code in layout.scalars if code.name == entity), None)
        # what the loop of `encode` needs of each field, without attribute access
        self._scalars = [(one.path, one.first - one.start, one.start, one.start + one.n) for one in layout.scalars]
        self._keys = [(path[0], offset, start, stop) for path, offset, start, stop in self._scalars if len(path) == 1]
        self._is_flat = len(self._keys) == len(self._scalars)
        self._binned = [
            (
                one.bins,
                one.path[0] if len(one.path) == 1 else None,
                one.path,
                None if one.is_alone else one.position,
                one.status,
            )
            for one in layout.binned
        ]
        self._activation = layout.is_on.tolist()
        self._is_code_only = not (layout.vectors or layout.binned or layout.grids or layout.stake or layout.joint)

    @property
    def collisions(self) -> int:
        """How often `encode` found a tile on a node that another tile took first; 0 where nothing is hashed."""
        return self._layout.grids.collisions if self._layout.grids else 0

    @property
    def code_positions(self) -> tuple[tuple[int, str, int, int], ...]:
        """Of each code that is an entry of its own: position among the paths, kind, first node, number of nodes."""
        return tuple((1 + i, self.kinds[one.first], one.first, one.n) for i, one in enumerate(self._layout.scalars))

    def encode(self, observation: Any) -> Features:
        """Active nodes of one observation.

        Raises:
            ValueError: a code outside its space, a known number or a stake that is NaN or infinite.
        """
        index = [0]
        if self._is_flat:
            for key, offset, start, stop in self._keys:
                code = int(observation[key])
                if not start <= code < stop:
                    raise _outside(code, start, stop)
                index.append(offset + code)
        else:
            for path, offset, start, stop in self._scalars:
                code = int(at(observation, path))
                if not start <= code < stop:
                    raise _outside(code, start, stop)
                index.append(offset + code)
        if self._is_code_only:
            nodes = np.array(index, np.int32)
            return Features(nodes, self._layout.is_on[nodes], 1.0)
        return self._encode_all(observation, index)

    def pure(self) -> Callable[[Any], Features]:
        """`encode` as a pure function of JAX arrays, to be called within compiled code.

        It takes an observation of the same structure as `encode` does, as arrays, and returns `Features` of arrays with
        the same nodes; ranks agree to float32 rounding. Instead of raising it takes the nearest code for one outside
        its space, 0 for NaN, `encoding.intervals.LARGEST` for infinity and 1 for an impossible stake.
        """
        find = compiled.paths_of(self._layout)
        return lambda observation: Features(*find(observation))

    def entity(self, observation: Any) -> int:
        """Code of the declared entity field; 0, unknown, where there is none or it is masked."""
        return 0 if self._entity is None else int(at(observation, self._entity.path))

    def pure_entity(self) -> Callable[[Any], Any]:
        """`entity` as a pure function of JAX arrays; returns [] i32."""
        return compiled.entity_of(self._entity)

    def dense(self, observation: Any) -> npt.NDArray[np.float32]:
        """[N - 1] f32: the same as one vector; the bias is left out and the stake stands for its inverse."""
        features = self.encode(observation)
        vector = np.zeros(self.n_nodes, np.float32)
        np.add.at(vector, features.nodes, features.activation)
        if self._layout.stake is not None:
            vector[-1] = features.stake
        return vector[1:]

    def dense_space(self) -> gymnasium.spaces.Box:
        """Space of `dense`."""
        bound = 1.0 if self._layout.stake is None else 100.0
        return gymnasium.spaces.Box(-bound, bound, (self.n_nodes - 1,), np.float32)

    def _encode_all(self, observation: Any, index: list[int]) -> Features:
        """The other values of an observation, after the nodes `index` of its single codes."""
        layout, joint = self._layout, 0
        if layout.joint is not None:
            joint = sum((i - one.first) * one.stride for i, one in zip(index[1:], layout.scalars, strict=True))
        for vector in layout.vectors:
            codes = _codes(observation, vector)
            joint += int(codes @ vector.stride)
            index += (vector.first + codes).tolist()
        value, isfinite = [self._activation[i] for i in index], math.isfinite
        for bins, key, path, position, status in self._binned:
            if status is not None and observation[status] != 0:
                bins.switch_off(index, value)
                continue
            entry = at(observation, path) if key is None else observation[key]
            number = number_of(entry) if position is None else float(np.ravel(entry)[position])
            if not isfinite(number):
                raise _not_finite(bins.name, number)
            bins.activate(number, index, value)
        if layout.grids is not None:
            nodes = layout.grids.activate(self._numbers(observation)).tolist()
            index += nodes
            value += [1.0] * len(nodes)
        if layout.joint is not None:
            index.append(layout.joint + joint)
            value.append(1.0)
        stake = 1.0
        if layout.stake is not None:
            stake = number_of(observation[layout.stake])
            if not (math.isfinite(stake) and stake > 0):
                raise ValueError(f"the stake `{layout.stake}` must be finite and positive, got {stake}.")
            index.append(self.n_nodes - 1)
            value.append(1.0 / stake)
        return Features(np.array(index, np.int32), np.array(value, np.float32), stake)

    def _numbers(self, observation: Any) -> npt.NDArray[np.float32]:
        """[D] f32: the numbers that are in grids."""
        parts = [
            np.asarray(at(observation, path), np.float32).reshape(-1)[positions]
            for path, positions in self._layout.gridded
        ]
        numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if not math.isfinite(numbers.sum()) and not np.isfinite(numbers).all():
            assert self._layout.grids is not None
            d = int(np.argmin(np.isfinite(numbers)))
            raise _not_finite(self._layout.grids.names[d], float(numbers[d]))
        return numbers


def _codes(observation: Any, vector: VectorCodes) -> npt.NDArray[np.int64]:
    """[V] i64 codes of an array, counted from 0."""
    codes = np.asarray(at(observation, vector.path)).reshape(-1)[vector.positions].astype(np.int64) - vector.start
    if (codes.view(np.uint64) >= vector.n_unsigned).any():
        i = int(np.argmax((codes < 0) | (codes >= vector.n)))
        start = int(vector.start[i])
        raise _outside(int(codes[i]) + start, start, start + int(vector.n[i]), vector.names[i])
    return codes


def _outside(code: int, start: int, stop: int, name: str = "") -> ValueError:
    what = f"the code `{name}`" if name else "an observed code"
    return ValueError(
        f"{what} must lie in [{start}, {stop}), got {code}; if these are pixels or numbers of another kind, name what "
        "they show in a gymnasium.wrappers.TransformObservation."
        if name
        else f"{what} must lie in [{start}, {stop}), got {code}."
    )


def _not_finite(name: str, number: float) -> ValueError:
    return ValueError(
        f"`{name}` must be a finite number, got {number}; replace missing numbers in a "
        "gymnasium.wrappers.TransformObservation, or declare a status field that says that it is unknown."
    )
