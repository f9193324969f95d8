"""Grids: tiles by hand, how nearby numbers share them, and what a hash costs."""

import itertools

import numpy as np
import pytest
from habitus.agents.encoding import Grids, Intervals, random_grids, tile_coding
from habitus.agents.encoding.grids import MAX_TILES, RANDOM_GRIDS, TILINGS


def unit(n, **changes):
    """Tile coding of n numbers in [0, 1]."""
    return tile_coding(1, [f"x{d}" for d in range(n)], [0.0] * n, [1.0] * n, {}, **changes)


def numbers(*values):
    return np.array(values, np.float32)


def shared(grids, a, b):
    return int(np.count_nonzero(grids.activate(a) == grids.activate(b)))


def test_tiles_by_hand():
    # two grids of tiles of 4 steps over 8 steps: one straight, one displaced by 1 step in x and 3 in y
    intervals = Intervals(["x", "y"], [0.0, 0.0], [8.0, 8.0], 8, 4, {})
    grids = Grids(10, intervals, [(0, 1), (0, 1)], [(4, 4), (4, 4)], [(0, 0), (1, 3)])
    # straight: 2 x 2 tiles; displaced: x has tiles [0,3) [3,7) [7,8), y [0,1) [1,5) [5,8): 3 x 3
    assert grids.n_nodes == 4 + 9
    assert grids.cells == {"x": 3, "y": 3}
    assert grids.activate(numbers(0.5, 0.5)).tolist() == [10 + 0, 14 + 0]
    assert grids.activate(numbers(3.5, 4.5)).tolist() == [10 + 1, 14 + 3 * 1 + 1]
    assert grids.activate(numbers(7.5, 5.5)).tolist() == [10 + 3, 14 + 3 * 2 + 2]
    labels = grids.labels()
    assert labels[1] == "#0: x < 4 & y >= 4"
    assert labels[4 + 3 * 1 + 1] == "#1: 3 <= x < 7 & 1 <= y < 5"


def test_labels_say_which_numbers_switch_a_node_on():
    grids = tile_coding(0, ["x", "y"], [0.0, -np.inf], [1.0, np.inf], {}, n_bins=3)
    labels, rng = grids.labels(), np.random.default_rng(0)
    assert len(labels) == len(set(labels)) == grids.n_nodes
    for x, y in zip(rng.random(300), rng.normal(0, 4, 300), strict=True):
        for node in grids.activate(numbers(x, y)):
            for claim in labels[node].split(": ")[1].split(" & "):
                bounded = claim if " <= " in claim else claim.replace(">=", "> -1e-3 +")
                assert eval(bounded, {"x": x, "y": y}) or near_an_edge(claim, x, y), (claim, x, y)


def near_an_edge(claim, x, y):
    """Labels have four digits."""
    return any(abs(abs(float(word)) - abs(v)) < 1e-2 for word in claim.split() if word[-1].isdigit() for v in (x, y))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_what_is_nearer_shares_more_tiles(n):
    grids, rng = unit(n), np.random.default_rng(n)
    here = rng.uniform(0.4, 0.6, (200, n)).astype(np.float32)
    tile = 1 / 8
    means = [
        np.mean([shared(grids, one, one + np.float32(step * tile)) for one in here]) for step in (0, 0.13, 0.5, 1.5)
    ]
    assert means[0] == TILINGS
    assert means[-1] == 0
    assert means == sorted(means, reverse=True)
    assert means[1] > means[2] > means[3] or n == 4  # four numbers that all move leave little


def test_displacements_differ_in_every_dimension():
    # along the diagonal an edge in x and one in y cut two grids at a time; equal displacements would cut one twice
    grids = unit(2)
    line = np.linspace(0.3, 0.43, 2_000).astype(np.float32)
    cuts = [shared(grids, numbers(a, a), numbers(b, b)) for a, b in itertools.pairwise(line)]
    assert min(cuts) == TILINGS - 2
    assert cuts.count(TILINGS - 2) >= TILINGS - 2
    assert sum(cut < TILINGS for cut in cuts) >= TILINGS - 1


def test_more_than_four_numbers_are_coded_by_pairs_and_singles():
    grids = unit(5)
    assert grids.n_active == TILINGS * (10 + 5)
    assert not grids.hashed.any()
    assert grids.n_nodes == sum(
        # straight tilings need no ninth tile
        (8 if not i else 9) * (8 if not 3 * i % 8 else 9) * 10 + (8 if not i else 9) * 5
        for i in range(TILINGS)
    )


def test_nothing_is_hashed_while_tiles_fit():
    assert not unit(4, n_bins=12).hashed.any()  # 13^4 = 28,561
    assert unit(4, n_bins=13).hashed.any()  # 14^4 = 38,416


def test_a_hash_keeps_the_size_and_counts_its_collisions():
    grids, rng = unit(4, n_bins=30), np.random.default_rng(0)
    assert grids.n_nodes == TILINGS * MAX_TILES
    assert len(grids.labels()) == grids.n_nodes
    seen = rng.random((2_000, 4)).astype(np.float32)
    nodes = np.stack([grids.activate(one) for one in seen])
    low = 1 + np.arange(TILINGS) * MAX_TILES
    assert ((nodes >= low) & (nodes < low + MAX_TILES)).all()
    # a tile meets a node taken by another with probability (tiles so far) / MAX_TILES: 2000^2 / 2 / MAX_TILES a tiling
    expected = TILINGS * 2_000**2 / 2 / MAX_TILES
    assert abs(grids.collisions - expected) < 5 * np.sqrt(expected)
    before = grids.collisions
    np.testing.assert_array_equal(grids.activate(seen[0]), nodes[0])  # the first to come collides with nobody
    assert grids.collisions == before
    other = unit(4, n_bins=30, seed=1)
    assert (np.stack([other.activate(one) for one in seen]) != nodes).mean() > 0.99
    assert unit(4).collisions == 0


def test_random_grids_are_local_bounded_and_seeded():
    names, low, high = [f"x{d}" for d in range(20)], [-np.inf] * 20, [np.inf] * 20
    grids = random_grids(1, names, low, high, {})
    assert grids.n_active == RANDOM_GRIDS
    assert grids.n_nodes < RANDOM_GRIDS * 10**3
    assert set(grids.cells) == set(names)
    assert min(grids.cells.values()) > 1  # every number is told apart by some grid
    rng = np.random.default_rng(0)
    here = rng.normal(size=(100, 20)).astype(np.float32)
    shares = [
        np.mean([shared(grids, one, one + np.float32(step)) for one in here]) / RANDOM_GRIDS for step in (0, 0.1, 1, 9)
    ]
    assert shares[0] == 1
    assert shares == sorted(shares, reverse=True)
    assert shares[1] > 0.8
    assert shares[3] < 0.3
    assert random_grids(1, names, low, high, {}).labels() == grids.labels()
    assert random_grids(1, names, low, high, {}, seed=1).labels() != grids.labels()
