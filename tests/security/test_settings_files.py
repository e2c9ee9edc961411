"""Settings in TOML: whatever they hold, a sentence that names the file."""

import pytest

from corrvae.cli.settings import read_config
from corrvae.errors import DataFileError


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"seed = {'9' * 5000}\n", "is not TOML"),
        (f"tau{'.a' * 4000} = 1\n", "tau must be"),
        (f"tau{'.a' * 100_000} = 1\n", "has more than 4,096 dots"),
        ("tau = " + "[" * 100_000, "is not TOML"),
        ("seed = 1e400\n", "seed must be"),
        (f"gamma = [0, 1{'0' * 400}]\n", "gamma must be"),
        (f"learning_rate = 1{'0' * 400}\n", "learning_rate must be"),
        ("tau = 1979-05-27T07:32:00Z\n", "tau must be"),
        ("tau = !!python/object/apply:os.system ['true']\n", "is not TOML"),
        ('tau = "' + "x" * 2**20, "has more than 1,048,576 bytes"),
    ],
    ids=[
        "digits",
        "dots",
        "more dots",
        "brackets",
        "infinite",
        "beyond floats",
        "beyond floats too",
        "date",
        "tag",
        "large",
    ],
)
def test_hostile_settings_are_told_in_a_sentence(tmp_path, text, problem):
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(DataFileError, match=problem) as caught:
        read_config(path)
    assert caught.value.path == path
    assert len(str(caught.value)) < 1000
