import bz2
import zipfile

import numpy as np
import pytest

from corrvae.datasets.archives import bare_name, beside, open_member
from corrvae.errors import DataFileError, MissingDataFileError

TEXT = b"1 100 4\n2 100 5\n"


def zipped(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def read(path, *names):
    with open_member(path, names or ("ratings.txt",)) as member:
        return member.name, member.stream.read()


@pytest.mark.parametrize("name", ["ratings.txt", "inner/ratings.txt"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("archived", [False, True])
def test_a_member_is_found_however_it_is_packed(tmp_path, name, packed, archived):
    name, content = (f"{name}.bz2", bz2.compress(TEXT)) if packed else (name, TEXT)
    if archived:
        place = zipped(tmp_path / "data.zip", {name: content, "other.txt": b""})
    else:
        place = tmp_path / "data"
        (place / name).parent.mkdir(parents=True)
        (place / name).write_bytes(content)
    assert read(place) == ("ratings.txt", TEXT)


@pytest.mark.parametrize(("name", "content"), [("ratings.txt", TEXT), ("ratings.txt.bz2", bz2.compress(TEXT))])
def test_the_file_itself_will_do(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert read(tmp_path / name) == ("ratings.txt", TEXT)


def test_what_lies_there_both_ways_is_taken_as_it_is(tmp_path):
    (tmp_path / "ratings.txt").write_bytes(TEXT)
    (tmp_path / "ratings.txt.bz2").write_bytes(b"damaged")
    assert read(tmp_path) == ("ratings.txt", TEXT)


def test_nothing_or_several_are_refused(tmp_path):
    with pytest.raises(DataFileError, match=r"holds no ratings\.txt or ratings\.csv"):
        read(tmp_path, "ratings.txt", "ratings.csv")
    place = zipped(tmp_path / "data.zip", {"a/ratings.txt": TEXT, "b/ratings.txt": TEXT})
    with pytest.raises(DataFileError, match=r"holds more than one: a/ratings\.txt, b/ratings\.txt"):
        read(place)


def test_a_missing_path_and_a_file_of_another_name_are_refused(tmp_path):
    with pytest.raises(MissingDataFileError):
        read(tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_bytes(TEXT)
    with pytest.raises(DataFileError, match="is neither a folder, nor a zip archive, nor named"):
        read(tmp_path / "notes.txt")


@pytest.mark.parametrize("name", ["../evil.txt", "a/../../evil.txt", "/evil.txt", "..\\evil.txt", "C:\\evil.txt"])
def test_members_that_would_leave_the_folder_are_refused(tmp_path, name):
    place = zipped(tmp_path / "data.zip", {"ratings.txt": TEXT, name: b"evil"})
    with pytest.raises(DataFileError, match="would leave the folder"):
        read(place)
    assert [path.name for path in tmp_path.iterdir()] == ["data.zip"]


def test_an_archive_that_was_cut_off_is_called_one(tmp_path):
    place = zipped(tmp_path / "data.zip", {"ratings.txt": TEXT * 1000}, zipfile.ZIP_STORED)
    place.write_bytes(place.read_bytes()[:-30])
    with pytest.raises(DataFileError, match="begins as a zip archive and has no end"):
        read(place)


def test_damage_is_told(tmp_path):
    place = zipped(tmp_path / "data.zip", {"ratings.txt": TEXT * 1000}, zipfile.ZIP_STORED)
    content = bytearray(place.read_bytes())
    content[200] ^= 0xFF
    place.write_bytes(content)
    with pytest.raises(DataFileError, match=r"is damaged or ends early \(Bad CRC-32"):
        read(place)
    for kept in (10, -10):
        (tmp_path / "ratings.txt.bz2").write_bytes(bz2.compress(TEXT * 1000)[:kept])
        with pytest.raises(DataFileError, match=r"is damaged or ends early|cannot be read"):
            read(tmp_path / "ratings.txt.bz2")
    (tmp_path / "ratings.txt.bz2").write_bytes(b"no such thing")
    with pytest.raises(DataFileError, match=r"cannot be read \(Invalid data stream\)"):
        read(tmp_path / "ratings.txt.bz2")


def test_damage_within_a_member_is_told(tmp_path):
    place = zipped(tmp_path / "data.zip", {"ratings.txt": TEXT * 1000})
    content = bytearray(place.read_bytes())
    content[60:70] = bytes(10)
    place.write_bytes(content)
    with pytest.raises(DataFileError, match="is damaged or ends early"):
        read(place)
    place = zipped(tmp_path / "data.zip", {"ratings.txt": TEXT})
    content = bytearray(place.read_bytes())
    content[content.index(b"PK\x01\x02") + 6] = 109  # the version that is needed to unpack it
    place.write_bytes(content)
    with pytest.raises(DataFileError, match=r"is damaged or ends early \(zip file version 10\.9"):
        read(place)


def test_names(tmp_path):
    assert bare_name("a/b.txt.bz2") == bare_name("b.txt") == "b.txt"
    (tmp_path / "b.txt.bz2").write_bytes(b"")
    assert beside(tmp_path / "b.txt.bz2", ["a.txt", "b.txt"]) == tmp_path
    assert beside(tmp_path / "b.txt.bz2", ["b.txt"]) == tmp_path / "b.txt.bz2"
    assert beside(tmp_path, ["a.txt", "b.txt"]) == tmp_path


def test_bombs_are_refused(tmp_path):
    place = zipped(tmp_path / "data.zip", {"ratings.txt": bytes(50_000_000)})
    with pytest.raises(DataFileError, match=r"claims to unpack from [\d,]+ bytes to 50,000,000"):
        read(place)
    (tmp_path / "ratings.txt.bz2").write_bytes(bz2.compress(bytes(50_000_000)))
    with pytest.raises(DataFileError, match=r"unpacks to more than [\d,]+ bytes"):
        read(tmp_path / "ratings.txt.bz2")


def test_a_file_of_a_folder_is_judged_by_its_own_size(tmp_path):
    text = np.random.default_rng(0).integers(0, 2, 3_000_000, np.uint8).tobytes()
    (tmp_path / "ratings.txt.bz2").write_bytes(bz2.compress(text))
    assert read(tmp_path) == ("ratings.txt", text)


def test_a_member_gives_no_more_than_it_claims(tmp_path):
    """Its size is in the archive's directory, which may lie: then the checksum is wrong, after so many bytes."""
    place = zipped(tmp_path / "data.zip", {"ratings.txt": bytes(50_000_000)})
    content = place.read_bytes()
    place.write_bytes(content.replace((50_000_000).to_bytes(4, "little"), (1000).to_bytes(4, "little")))
    with pytest.raises(DataFileError, match="is damaged or ends early"):
        read(place)


@pytest.mark.parametrize("name", ["./ratings.txt", "inner//ratings.txt", "inner/./ratings.txt"])
def test_names_that_spell_a_path_in_another_way_are_found(tmp_path, name):
    assert read(zipped(tmp_path / "data.zip", {name: TEXT, "other/ratings.txt/": b""})) == ("ratings.txt", TEXT)


def test_a_folder_in_an_archive_is_no_file(tmp_path):
    with pytest.raises(DataFileError, match=r"data\.zip: holds no ratings\.txt"):
        read(zipped(tmp_path / "data.zip", {"ratings.txt/": b""}))


def test_names_that_are_no_text_are_damage(tmp_path):
    place = zipped(tmp_path / "data.zip", {"éé/ratings.txt": TEXT})
    place.write_bytes(place.read_bytes().replace("éé".encode(), b"\xff\xfe\xff\xfe"))
    with pytest.raises(DataFileError, match=r"data\.zip: is damaged"):
        read(place)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_python_unpacks_without_a_limit_are_refused(tmp_path, method):
    with pytest.raises(DataFileError, match=f"data.zip: member 'ratings.txt' is packed by the method {method}"):
        read(zipped(tmp_path / "data.zip", {"ratings.txt": TEXT}, method))
