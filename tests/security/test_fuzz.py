"""Any bytes: a result whose parts fit together, or an error that names the file. The long form is ``fuzz.py``."""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuzz
from corrvae import CorrelationGraph
from corrvae.cli.settings import read_config
from corrvae.errors import CorrvaeError
from corrvae.reading import read_features
from samples import make_sources

INPUTS = dict.fromkeys(fuzz.READERS, 200) | {"models": 100, "checkpoints": 25, "annotated": 40, "shards": 100}
MAGIC = [b"PAR1", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"\x1f\x8b"]
BEGINNINGS = st.sampled_from([b"", b"a,b\n", b"1 2\n", b"id,x,y\n", *MAGIC])
LINES = st.text(alphabet='ab01.,;\t "#-e\n', max_size=60).map(str.encode)


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz") / "sources"
    make_sources(folder)
    return folder


@pytest.mark.parametrize("reader", [*fuzz.READERS])
def test_mutated_files_never_surprise(nursery, sources, reader):
    outcome = fuzz.run(nursery, reader, sources, INPUTS[reader], seed=1)
    assert outcome["read"] + outcome["refused"] == INPUTS[reader]
    assert outcome["refused"] > 0


def refusal(read, path):
    """Give what a reader says against a file; None if it reads it, and any other error as it is."""
    try:
        read(path)
    except CorrvaeError as error:
        return str(error)
    return None


@pytest.mark.parametrize("read", [CorrelationGraph.from_file, read_features, read_config])
@settings(max_examples=60)
@given(st.tuples(BEGINNINGS, st.binary(max_size=60) | LINES).map(b"".join))
def test_any_bytes_at_all(tmp_path_factory, read, content):
    path = tmp_path_factory.mktemp("any") / "input"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = refusal(read, path)
    assert said is None or str(path) in said
