from pathlib import Path

import pytest

from corrvae.errors import DataFileError
from corrvae.graphs.files.reading import FileLayout
from corrvae.graphs.files.sniff import TextForm, is_integer, sniff, split_line


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("1 2\n", TextForm(" ", 0, 1, 2, None, ["1", "2"])),
        (" 1  2 1\n", TextForm(" ", 0, 1, 3, None, ["1", "2", "1"])),
        ("# x\n\nfrom,to\na,b\n", TextForm(",", 3, 3, 2, ["from", "to"], ["a", "b"])),
        ("a\tb\tc\nd\te\tf\n", TextForm("\t", 0, 1, 3, None, ["a", "b", "c"])),
        ("\ta\t\tb\nc\td\n", TextForm(" ", 0, 1, 2, None, ["a", "b"])),
        ("x,y z\nw z\n", TextForm(" ", 0, 1, 2, None, ["x,y", "z"])),
        ("source;target\n", TextForm(";", 1, 1, 2, ["source", "target"], [])),
        ("id;next\n1;2\n", TextForm(";", 1, 1, 2, ["id", "next"], ["1", "2"])),
        ("a;b;1,5\nc;d;2,5\n", TextForm(";", 0, 1, 3, None, ["a", "b", "1,5"])),
        ("a;b;1,5\nc;d;2\n", TextForm(";", 0, 1, 3, None, ["a", "b", "1,5"])),
        ("a,b;c\nd,e\n", TextForm(",", 0, 1, 2, None, ["a", "b;c"])),
        ("#x\n1,2\n %y\n3,4\n", TextForm(",", 1, 2, 2, None, ["1", "2"])),
        ("a,b\nc\n", TextForm(",", 0, 1, 2, None, ["a", "b"])),
    ],
)
def test_the_first_lines_tell_the_form(tmp_path: Path, text, form):
    path = tmp_path / "edges"
    path.write_text(text)
    assert sniff(path, FileLayout()) == form


USUAL = [
    "person,friend", "user,member", "node,vertex", "a,b", "left,right", "id1,id2",
    "id_1,id_2", "from,to", "source,target", "i,j", "u,v", "x,y",
    "who,whom", "parent,child", "trustor,trustee", "Person,FRIEND", "A,B", "user,user_2",
    "user,user.1", "person1,person2", "src,dst", "FromNodeId,ToNodeId",
]  # fmt: skip


@pytest.mark.parametrize("names", USUAL)
def test_usual_names_are_a_header(tmp_path: Path, names):
    path = tmp_path / "edges"
    path.write_text(f"{names}\nann,bob\nbob,cem\n")
    form = sniff(path, FileLayout())
    assert (form.names, form.first_fields) == (names.split(","), ["ann", "bob"])
    # but not when one of them is an id further on
    path.write_text(f"{names}\nann,bob\nbob,{names.split(',')[1]}\n")
    assert sniff(path, FileLayout()).names is None


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n",
        "a,b\nc,d\n",
        "x,y\nann,z\n",
        "person,ann\nbob,cem\n",
        "a,friend\nbob,cem\n",
        "user1,user2\nuser3,user4\n",
        "user_1,user_2\nann,USER_17\n",
        "p1,p2\nann,bob\n",
        "a1,a2\nann,bob\n",
    ],
)
def test_names_that_could_well_be_ids_are_no_header(tmp_path: Path, text):
    path = tmp_path / "edges"
    path.write_text(text)
    assert sniff(path, FileLayout()).names is None


def test_a_first_line_without_end_is_refused(tmp_path):
    path = tmp_path / "edges"
    path.write_bytes(b"1 2\n" + b"3" * (2**23 + 1))
    with pytest.raises(DataFileError, match="edges: line 2 is longer than 8,388,608 bytes"):
        sniff(path, FileLayout())


def test_fields_and_integers():
    assert not is_integer("1" * 5000)
    assert split_line('"a, b", c ,d', ",") == ["a, b", "c", "d"]
    assert split_line(" a \t b\r\n", " ") == ["a", "b"]
    assert [is_integer(field) for field in ("12", "-3", "1.0", "", "x", "\u0663", str(2**63), str(-(2**63)))] == [
        True, True, False, False, False, False, False, True,
    ]  # fmt: skip


def test_lines_may_be_longer_than_a_field(tmp_path):
    names = [f"gene{number:06d}" for number in range(20_000)]
    path = tmp_path / "wide.csv"
    path.write_text(",".join(["id", *names]) + "\n" + ",".join(["a", *["1"] * 20_000]) + "\n")
    form = sniff(path, FileLayout(columns=(0, 1)), comments=False)
    assert (form.delimiter, form.n_fields, form.names) == (",", 20_001, ["id", *names])
