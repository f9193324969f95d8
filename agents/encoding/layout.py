"""Which nodes an observation space gets: their numbers, and what has to be read of an observation to find them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt

from ..declared import DeclaredField, DeclaredSchema
from . import bins, grids, values
from .values import Codes, Numbers, Path

BoxCode = Literal["auto", "uniform", "tiles", "random"]
MAX_TILED = 6  # numbers that "auto" codes by tiles; more get random grids
MAX_JOINT_NODES = 20_000  # combinations of codes that get a node each


class ScalarCode(NamedTuple):
    """A code that is an entry of its own.

    Attributes:
        path, name: where it is in an observation, and its name.
        first: node of its least code.
        n: number of codes.
        start: least code.
        stride: what it adds to the number of a combination.
    """

    path: Path
    name: str
    first: int
    n: int
    start: int
    stride: int


class VectorCodes(NamedTuple):
    """The V codes of an array, each as in `ScalarCode`; [V] i64 unless said otherwise.

    Attributes:
        path: where the array is in an observation.
        names: [V] names.
        positions: which of the raveled values they are.
        first, n, start, stride: as in `ScalarCode`.
    """

    path: Path
    names: tuple[str, ...]
    positions: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    n: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    stride: npt.NDArray[np.int64]

    @property
    def n_unsigned(self) -> npt.NDArray[np.uint64]:
        """[V] u64: `n`, for one comparison that finds codes on either side."""
        return self.n.view(np.uint64)


class BinnedNumber(NamedTuple):
    """A number in bins.

    Attributes:
        bins: its bins.
        path, position: the array that holds it, and which of the raveled values it is.
        is_alone: whether that array has no other value.
        status: field of its status, or None.
    """

    bins: bins.Bins
    path: Path
    position: int
    is_alone: bool
    status: str | None


class Layout(NamedTuple):
    """Everything that encoding needs.

    Attributes:
        labels, kinds: [N] of each node.
        cells: field -> number of values that it is told apart into.
        scalars, vectors: codes, in this order among the paths.
        binned: numbers in bins.
        gridded: (path, positions [V] i64) of the arrays whose numbers are in grids, and
        grids: those grids, or None.
        joint: first node of the combinations of all codes, or None.
        stake: field of the declared stake, or None; its node is the last.
        is_on: [N] f32, activation of the node of a code: 0 where a code says nothing.
    """

    labels: tuple[str, ...]
    kinds: tuple[str, ...]
    cells: dict[str, int]
    scalars: tuple[ScalarCode, ...]
    vectors: tuple[VectorCodes, ...]
    binned: tuple[BinnedNumber, ...]
    gridded: tuple[tuple[Path, npt.NDArray[np.int64]], ...]
    grids: grids.Grids | None
    joint: int | None
    stake: str | None
    is_on: npt.NDArray[np.float32]

    @property
    def n_active(self) -> int:
        """Number of paths of every observation."""
        n_codes = len(self.scalars) + sum(len(vector.names) for vector in self.vectors)
        n_binned = sum(1 + len(bins.RANK_NODES[number.bins.rank]) for number in self.binned)
        n_gridded = self.grids.n_active if self.grids else 0
        return 1 + n_codes + n_binned + n_gridded + (self.joint is not None) + (self.stake is not None)


class Options(NamedTuple):
    """Options of `FeatureEncoder`, which documents them."""

    rank: bins.Rank
    masked: Sequence[str]
    box: BoxCode
    joint: bool | None
    scales: Mapping[str, float]
    n_bins: int
    seed: int


class _Nodes:
    """Nodes so far."""

    def __init__(self) -> None:
        self.labels, self.kinds = ["bias"], ["bias"]
        self.off: list[int] = []
        self.cells: dict[str, int] = {}

    def add(self, labels: Sequence[str], kind: str) -> int:
        """Add nodes; returns the first."""
        first = len(self.labels)
        self.labels += labels
        self.kinds += [kind] * len(labels)
        return first


def lay_out(space: gymnasium.Space[Any], schema: DeclaredSchema | None, options: Options) -> Layout:
    """Nodes of an observation space, in the order of its entries; then grids, combinations and the stake.

    Raises:
        TypeError: an entry of the space cannot be encoded.
        ValueError: names that are not observed, labels that do not fit, or too many combinations.
    """
    declared = {field.name: field for field in schema.fields} if schema else {}
    of_status = {field.status: field.name for field in declared.values() if field.status}
    stake, entity = (schema.stake_field, schema.entity_field) if schema else (None, None)
    left_out = {stake, *(status for status, name in of_status.items() if name in options.masked)}
    entries = [one for one in values.read_space(space, options.masked) if one.names[0] not in left_out]
    codes = [entry for entry in entries if isinstance(entry, Codes)]
    numbers = [entry for entry in entries if isinstance(entry, Numbers)]
    _check_scales(options.scales, numbers)
    strides = _strides(codes, options.joint, is_declared=schema is not None)
    box = _box_code(options.box, numbers, declared, is_declared=schema is not None)
    laid, nodes = 0, _Nodes()
    scalars: list[ScalarCode] = []
    vectors: list[VectorCodes] = []
    binned: list[BinnedNumber] = []
    for entry in entries:
        if isinstance(entry, Numbers):
            binned += _binned(nodes, entry, declared, options, is_uniform=box == "uniform")
            continue
        stride, laid = strides[laid : laid + len(entry.names)], laid + len(entry.names)
        if entry.is_scalar:
            scalars.append(_scalar(nodes, entry, declared, of_status, entity, int(stride[0])))
        else:
            vectors.append(_vector(nodes, entry, stride))
    gridded, grid = _gridded(nodes, numbers, declared, options, box)
    joint = _joint(nodes, codes) if strides.any() else None
    if stake is not None:
        nodes.add(["1 / stake"], "inverse_stake")
    is_on = np.ones(len(nodes.labels), np.float32)
    is_on[nodes.off] = 0.0
    return Layout(
        labels=tuple(nodes.labels),
        kinds=tuple(nodes.kinds),
        cells=nodes.cells,
        scalars=tuple(scalars),
        vectors=tuple(vectors),
        binned=tuple(binned),
        gridded=gridded,
        grids=grid,
        joint=joint,
        stake=stake,
        is_on=is_on,
    )


def _scalar(
    nodes: _Nodes,
    entry: Codes,
    declared: Mapping[str, DeclaredField],
    of_status: Mapping[str, str],
    entity: str | None,
    stride: int,
) -> ScalarCode:
    name, n, start = entry.names[0], int(entry.sizes[0]), int(entry.starts[0])
    field = declared.get(name)
    labels = list(field.labels) if field and field.labels else [str(code) for code in range(start, start + n)]
    if len(labels) != n:
        raise ValueError(f"`{name}` has {n} codes but the schema declares {len(labels)} labels.")
    first = nodes.add([f"{name} = {label}" for label in labels], "entity" if name == entity else "context")
    nodes.cells[name] = n
    # "known" says nothing that the number's own nodes do not say
    if start == 0 and (name == entity or name in of_status):
        nodes.off.append(first)
    return ScalarCode(entry.path, name, first, n, start, stride)


def _vector(nodes: _Nodes, entry: Codes, stride: npt.NDArray[np.int64]) -> VectorCodes:
    first = [
        nodes.add([f"{name} = {code}" for code in range(start, start + n)], "context")
        for name, n, start in zip(entry.names, entry.sizes.tolist(), entry.starts.tolist(), strict=True)
    ]
    nodes.cells.update(zip(entry.names, entry.sizes.tolist(), strict=True))
    return VectorCodes(
        entry.path, entry.names, entry.positions, np.array(first, np.int64), entry.sizes, entry.starts, stride
    )


def _binned(
    nodes: _Nodes, entry: Numbers, declared: Mapping[str, DeclaredField], options: Options, *, is_uniform: bool
) -> list[BinnedNumber]:
    """The numbers of an entry that are coded by bins."""
    found = []
    for name, position, low, high in zip(entry.names, entry.positions.tolist(), entry.low, entry.high, strict=True):
        field, first = declared.get(name), len(nodes.labels)
        if field is not None and len(field.edges) > 0:
            edges = tuple(float(edge) for edge in field.edges)
            one = bins.Bins(name, first, (low, *edges, high), edges, options.rank)
        elif is_uniform:
            one = bins.uniform(name, first, low, high, options.scales.get(name), options.rank, options.n_bins)
        else:
            continue
        labels = one.labels()
        nodes.add(labels[: one.n_bins], "context")
        nodes.add(labels[one.n_bins :], "rank")
        nodes.cells[name] = one.n_bins
        is_alone = entry.size == 1
        found.append(BinnedNumber(one, entry.path, position, is_alone, field.status if field else None))
    return found


def _gridded(
    nodes: _Nodes,
    numbers: Sequence[Numbers],
    declared: Mapping[str, DeclaredField],
    options: Options,
    box: BoxCode,
) -> tuple[tuple[tuple[Path, npt.NDArray[np.int64]], ...], grids.Grids | None]:
    """All numbers that are coded by grids, and these."""
    if box == "uniform":
        return (), None
    paths: list[tuple[Path, npt.NDArray[np.int64]]] = []
    names: list[str] = []
    low: list[float] = []
    high: list[float] = []
    for entry in numbers:
        kept = [i for i, name in enumerate(entry.names) if not _has_edges(declared, name)]
        if kept:
            paths.append((entry.path, entry.positions[kept]))
            names += [entry.names[i] for i in kept]
            low += [entry.low[i] for i in kept]
            high += [entry.high[i] for i in kept]
    if not names:
        return (), None
    if box == "tiles":
        found = grids.tile_coding(
            len(nodes.labels), names, low, high, options.scales, n_bins=options.n_bins, seed=options.seed
        )
    else:
        found = grids.random_grids(len(nodes.labels), names, low, high, options.scales, seed=options.seed)
    nodes.add(found.labels(), "tile")
    nodes.cells.update(found.cells)
    return tuple(paths), found


def _joint(nodes: _Nodes, codes: Sequence[Codes]) -> int:
    """Nodes of all combinations of codes, the last code changing fastest."""
    parts = [
        [f"{name} = {code}" for code in range(start, start + n)]
        for entry in codes
        for name, n, start in zip(entry.names, entry.sizes.tolist(), entry.starts.tolist(), strict=True)
    ]
    return nodes.add([" & ".join(words) for words in itertools.product(*parts)], "joint")


def _strides(codes: Sequence[Codes], joint: bool | None, *, is_declared: bool) -> npt.NDArray[np.int64]:
    """[codes] i64: what each code adds to the number of a combination; all 0 where combinations get no nodes."""
    sizes = [int(n) for entry in codes for n in entry.sizes]
    n_joint = math.prod(sizes)
    if joint is None:
        joint = not is_declared and len(sizes) > 1 and n_joint <= MAX_JOINT_NODES
    if not joint:
        return np.zeros(len(sizes), np.int64)
    if not sizes or n_joint > MAX_JOINT_NODES:
        raise ValueError(
            f"`joint` needs codes with at most {MAX_JOINT_NODES} combinations, got {n_joint} of {len(sizes)} codes; "
            "leave some out (`masked`) or set joint=False."
        )
    return np.array([math.prod(sizes[i + 1 :]) for i in range(len(sizes))], np.int64)


def _box_code(
    box: BoxCode, numbers: Sequence[Numbers], declared: Mapping[str, DeclaredField], *, is_declared: bool
) -> BoxCode:
    if box != "auto":
        return box
    if is_declared:
        return "uniform"
    n_free = sum(not _has_edges(declared, name) for entry in numbers for name in entry.names)
    return "tiles" if n_free <= MAX_TILED else "random"


def _check_scales(scales: Mapping[str, float], numbers: Sequence[Numbers]) -> None:
    names = [name for entry in numbers for name in entry.names]
    if unknown := [name for name in scales if name not in names]:
        raise ValueError(f"`scales` must name observed numbers, got {unknown}; they are {names[:64]}.")


def _has_edges(declared: Mapping[str, DeclaredField], name: str) -> bool:
    field = declared.get(name)
    return field is not None and len(field.edges) > 0
