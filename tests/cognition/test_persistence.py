"""Files are whole, unchanged, readable, or refused by name."""

import hashlib
import json
import zipfile

import numpy as np
import pytest
from habitus import cognition
from habitus.cognition import persistence

ARRAYS = {
    "net": np.arange(600, dtype=np.float32),
    "uses": np.arange(6, dtype=np.int32).reshape(2, 3),
    "step": np.array(7),
}
HEADER = {"format": "test", "labels": ["bias", "Größe < 3"], "noise": 0.3}


@pytest.fixture
def file(tmp_path):
    return persistence.write(tmp_path / "memory.zip", HEADER, ARRAYS)


def test_what_was_written_is_read(file):
    header, arrays = persistence.read(file)
    assert header == HEADER
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)


def test_the_same_content_gives_the_same_bytes(file, tmp_path):
    again = persistence.write(tmp_path / "again.zip", HEADER, dict(reversed(ARRAYS.items())))
    assert again.read_bytes() == file.read_bytes()


def test_nothing_but_the_file_is_left_behind(file):
    persistence.write(file, HEADER, ARRAYS)
    assert [path.name for path in file.parent.iterdir()] == ["memory.zip"]


def test_a_failed_write_keeps_the_old_file(file):
    before = file.read_bytes()
    with pytest.raises(TypeError):
        persistence.write(file, {"what": object()}, ARRAYS)
    with pytest.raises(ValueError, match="Object arrays"):
        persistence.write(file, HEADER, {"net": np.array([object()])})
    assert file.read_bytes() == before
    assert len(list(file.parent.iterdir())) == 1


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        persistence.read(tmp_path / "none.zip")


def test_where_nothing_can_be_written_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder .*none does not exist; create it"):
        persistence.write(tmp_path / "none" / "memory.zip", HEADER, ARRAYS)
    with pytest.raises(IsADirectoryError, match="must name a file, got the folder"):
        persistence.write(tmp_path, HEADER, ARRAYS)
    assert not list(tmp_path.iterdir())


def test_what_is_no_zip_is_refused(tmp_path):
    path = tmp_path / "memory.zip"
    path.write_bytes(b"not a zip at all")
    with pytest.raises(cognition.DamagedFileError, match="is no zip archive or was cut off"):
        persistence.read(path)


@pytest.mark.parametrize("share", [0.2, 0.6, 0.999])
def test_a_file_that_was_cut_off_is_refused(file, share):
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(cognition.DamagedFileError, match="is no zip archive or was cut off"):
        persistence.read(file)


def test_every_flipped_byte_of_the_content_is_noticed(file):
    content = file.read_bytes()
    for position in range(60, len(content) - 400, 97):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        file.write_bytes(bytes(damaged))
        try:
            header, arrays = persistence.read(file)
        except cognition.DamagedFileError:
            continue
        # a byte of the archive's own bookkeeping that nothing depends on
        assert header == HEADER
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(arrays[name], array)


def test_the_damaged_member_is_named(file):
    content = bytearray(file.read_bytes())
    content[content.index(np.float32(300).tobytes())] ^= 0xFF
    file.write_bytes(bytes(content))
    with pytest.raises(cognition.DamagedFileError, match=r"the member `net.npy` of .* is damaged"):
        persistence.read(file)


def rewritten(file, change, *, is_signed=False):
    """The archive with its members changed by `change`, the zip's own checksums in order, the header's if wished."""
    with zipfile.ZipFile(file) as archive:
        members, comment = {name: archive.read(name) for name in archive.namelist()}, archive.comment
    change(members)
    with zipfile.ZipFile(file, "w") as archive:
        archive.comment = hashlib.sha256(members["header.json"]).hexdigest().encode() if is_signed else comment
        for name, content in members.items():
            archive.writestr(name, content)


def test_a_missing_member_is_named(file):
    rewritten(file, lambda members: members.pop("uses.npy"))
    with pytest.raises(cognition.DamagedFileError, match=r"lacks the member `uses.npy`"):
        persistence.read(file)


def test_a_replaced_member_is_noticed(file):
    rewritten(file, lambda members: members.update({"uses.npy": members["net.npy"]}))
    with pytest.raises(cognition.DamagedFileError, match=r"`uses.npy` of .* is damaged: its SHA-256"):
        persistence.read(file)


def test_a_file_without_header_is_refused(file):
    rewritten(file, lambda members: members.pop("header.json"))
    with pytest.raises(cognition.DamagedFileError, match=r"has no `header.json`"):
        persistence.read(file)


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"schema": "one"}', b'{"schema": 1, "sha256": [], "header": {}}'])
def test_a_header_that_is_none_is_refused(file, text):
    rewritten(file, lambda members: members.update({"header.json": text}))
    with pytest.raises(cognition.DamagedFileError, match=r"header `header.json` of .* is damaged"):
        persistence.read(file)


def test_a_header_that_was_edited_is_refused(file):
    rewritten(file, lambda members: members.update({"header.json": members["header.json"].replace(b"0.3", b"0.4")}))
    with pytest.raises(cognition.DamagedFileError, match=r"header `header.json` of .* is damaged: its SHA-256"):
        persistence.read(file)


@pytest.mark.parametrize("schema", [-1, 0, 1.5, True, "1", None])
def test_a_schema_that_is_no_number_of_one_is_refused(file, schema):
    def other(members):
        members["header.json"] = json.dumps({**json.loads(members["header.json"]), "schema": schema}).encode()

    rewritten(file, other, is_signed=True)
    with pytest.raises(cognition.DamagedFileError, match="`schema` must be a whole number of at least 1"):
        persistence.read(file)


def test_a_member_that_is_no_array_is_refused(file):
    def other(members):
        header = json.loads(members["header.json"])
        header["sha256"]["net.npy"] = hashlib.sha256(b"").hexdigest()
        members.update({"net.npy": b"", "header.json": json.dumps(header).encode()})

    rewritten(file, other, is_signed=True)
    with pytest.raises(cognition.DamagedFileError, match=r"`net.npy` of .* is no plain array"):
        persistence.read(file)


def test_a_newer_schema_is_refused_by_number(file):
    def newer(members):
        header = json.loads(members["header.json"])
        members["header.json"] = json.dumps({**header, "schema": 7}).encode()

    rewritten(file, newer)
    with pytest.raises(cognition.NewerFileError, match="follows schema 7, this version of habitus reads up to 1"):
        persistence.read(file)
