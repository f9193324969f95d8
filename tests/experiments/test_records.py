"""A record is there whole or not at all, and damage is noticed."""

import json
import os

import numpy as np
import pytest
from habitus.experiments import records
from habitus.experiments.errors import RecordError
from habitus.experiments.plan import spec_hash

SPEC = {"world": {"id": "x", "kwargs": {}}, "seed": 1}
RUN = spec_hash(SPEC)


def steps(n=50):
    rng = np.random.default_rng(0)
    return records.Steps(
        action=rng.integers(3, size=n).astype(np.int16),
        reward=rng.random(n, np.float32),
        score=rng.random(n, np.float32),
        best=np.full(n, np.nan, np.float32),
        boundary=rng.random(n) < 0.5,
        regime=np.zeros(n, np.float32),
        epsilon=np.full(n, np.nan, np.float32),
    )


def header(**changes):
    return {"run": RUN, "spec": SPEC, "status": "complete", "timing": {"total_s": 1.0}, "machine": {}} | changes


@pytest.fixture
def written(tmp_path):
    records.write(tmp_path, header(), steps())
    return tmp_path


def test_what_is_written_is_read(written):
    record = records.read(written, RUN)
    assert record.is_complete
    assert record.header["spec"] == SPEC
    for name, expected in vars(steps()).items():
        found = getattr(record.steps, name)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_equal_steps_are_equal_bytes(tmp_path):
    for name in ("a", "b"):
        records.write(tmp_path / name, header(timing={"total_s": len(name)}), steps())
    assert (tmp_path / "a" / RUN / "steps.npz").read_bytes() == (tmp_path / "b" / RUN / "steps.npz").read_bytes()


@pytest.mark.parametrize("file", ["record.json", "steps.npz"])
@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "delete"])
def test_every_damage_is_noticed(written, file, damage):
    path = written / RUN / file
    content = bytearray(path.read_bytes())
    if damage == "delete":
        path.unlink()
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes({"truncate": content[:-10], "flip": content, "empty": b""}[damage])
    with pytest.raises(RecordError, match=file):
        records.read(written, RUN)


def test_a_record_under_another_name_is_refused(written):
    os.rename(written / RUN, written / ("0" * 16))
    with pytest.raises(RecordError, match=f"expected the record of run {'0' * 16}, got that of {RUN}"):
        records.read(written, "0" * 16)


def test_a_newer_format_is_refused_by_name(written):
    path = written / RUN / "record.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    with pytest.raises(RecordError, match="expected record format 1 or older, got 99; read it with a newer habitus"):
        records.read(written, RUN)


def test_a_failed_run_has_no_steps(tmp_path):
    records.write(tmp_path, header(status="failed", error={"message": "no"}), None)
    record = records.read(tmp_path, RUN)
    assert record.steps is None
    assert not record.is_complete


def test_writing_again_replaces(written):
    records.write(written, header(timing={"total_s": 2.0}), steps(10))
    assert len(records.read(written, RUN).steps) == 10
    assert [path.name for path in written.iterdir()] == [RUN]


def test_a_writer_that_dies_leaves_no_record(tmp_path, monkeypatch):
    def die(path, content):
        path.write_bytes(content[:5])
        raise KeyboardInterrupt

    monkeypatch.setattr(records, "_write_file", die)
    with pytest.raises(KeyboardInterrupt):
        records.write(tmp_path, header(), steps())
    assert not records.exists(tmp_path, RUN)
    assert records.clean(tmp_path) == 1
    assert list(tmp_path.iterdir()) == []
