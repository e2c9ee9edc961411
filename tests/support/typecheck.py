"""The run-time type checker of the tests: an int will do where a float is asked for, as Python's typing rules say."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
