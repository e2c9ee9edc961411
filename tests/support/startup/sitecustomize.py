"""How every Python begins that a test starts: it cannot reach another machine either."""

import importlib.util
from pathlib import Path

_PLACE = Path(__file__).parent.parent / "offline.py"
_SPECIFICATION = importlib.util.spec_from_file_location("offline", _PLACE)
_OFFLINE = importlib.util.module_from_spec(_SPECIFICATION)
_SPECIFICATION.loader.exec_module(_OFFLINE)
_OFFLINE.guard()
