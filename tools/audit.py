"""What corrvae rests on: every package that comes with it, its licence, and, when asked, its known vulnerabilities.

Licences are read from what is installed, without a network. ``--vulnerabilities`` runs pip-audit, which asks a public
database; where that cannot be reached, this is said, and nothing is claimed.
"""

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Licences that allow use in any program, closed ones too, without conditions on that program.
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|HPND|Unlicense|CC0|0BSD|PIL|Boost|BSL-1\.0)\b", re.I
)
# Licences that put conditions on the programs that use what they are given for, or forbid some uses.
STRICT = re.compile(
    r"\bA?GPL|(?<!Lesser )General Public|proprietary|commercial|\b(SSPL|BUSL|EULA|CC-BY-NC|CC-BY-ND|Commons Clause)\b",
    re.I,
)
EXCEPTION = re.compile(r"runtime library exception|GCC-exception|linking-exception", re.I)
# Each part of the file stays under its licence when it is changed; what uses it does not come under it.
LIMITED = re.compile(r"\b(MPL|Mozilla|LGPL|Lesser)", re.I)
_TITLE, _NOT_THERE = 100, "-"
_OF_DEVELOPERS = {"dev", "docs"}


@dataclass(frozen=True)
class Package:
    """An installed package, with what its metadata say of its licence."""

    name: str
    version: str
    licence: str

    @property
    def verdict(self) -> str:
        """Whether the licence is permissive, limited to the package's own files, or to be looked at.

        All parts of a licence that are joined by AND count, and the best of those joined by OR, which binds less.
        """
        return _VERDICTS[_Expression(self.licence).rank()]


_VERDICTS = ("permissive", "limited", "LOOK AT IT")


class _Expression:
    """A licence in words, such as "MIT AND (GPL-3.0-only OR BSD)", in capitals or not."""

    def __init__(self, licence: str) -> None:
        self._words = re.findall(r"[()]|[^\s()]+", licence)

    def rank(self) -> int:
        found = [self._alternatives()]
        while self._words:  # after a bracket that was never opened
            self._words.pop(0)
            found.append(self._alternatives())
        return max(found)

    def _alternatives(self) -> int:
        found = [self._conjunction()]
        while self._takes("or"):
            found.append(self._conjunction())
        return min(found)

    def _conjunction(self) -> int:
        found = [self._part()]
        while self._takes("and"):
            found.append(self._part())
        return max(found)

    def _part(self) -> int:
        if self._words[:1] == ["("]:
            self._words.pop(0)
            found = self._alternatives()
            self._words[:1] = [word for word in self._words[:1] if word != ")"]
            return found
        name: list[str] = []
        depth = 0
        # what is in brackets behind a name belongs to it
        while self._words and (depth or not (self._words[0] == ")" or self._joins())):
            depth += {"(": 1, ")": -1}.get(self._words[0], 0)
            name.append(self._words.pop(0))
        return _rank(" ".join(name))

    def _takes(self, joint: str) -> bool:
        if self._joins() != joint:
            return False
        self._words.pop(0)
        return True

    def _joins(self) -> str | None:
        """Give the AND or OR that comes next; that of "or later", and of a licence's own name, is none."""
        word, after = (*(word.lower() for word in self._words[:2]), "", "")[:2]
        own = after in ("later", "newer", "any") if word == "or" else after.startswith("disclaimer")
        return word if word in ("and", "or") and not own else None


def _rank(licence: str) -> int:
    if EXCEPTION.search(licence):
        return 1
    if STRICT.search(licence):
        return 2
    if LIMITED.search(licence):
        return 1
    return 0 if PERMISSIVE.search(licence) else 2


def needed() -> list[str]:
    """Give what the project asks for, with the extras for those who use it, not for those who work on it."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    optional = {name: lines for name, lines in project["optional-dependencies"].items() if name not in _OF_DEVELOPERS}
    return [*project["dependencies"], *(line for lines in optional.values() for line in lines)]


def closure(requirements: Iterable[str]) -> list[Package]:
    """Give the packages that are needed here, directly or not, in the order of their names.

    One that is not installed is among them, with a licence to look at.
    """
    found: dict[str, Package] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(Requirement(line), frozenset[str]()) for line in requirements]
    while waiting:
        required, extras = waiting.pop()
        if required.marker is not None and not any(required.marker.evaluate({"extra": e}) for e in ("", *extras)):
            continue  # needed elsewhere only
        name, chosen = canonicalize_name(required.name), frozenset(required.extras)
        if (name, chosen) in seen:
            continue
        seen.add((name, chosen))
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            found[name] = Package(name, _NOT_THERE, "not installed")
            continue
        found[name] = Package(name, installed.version, licence_of(installed))
        waiting += [(Requirement(line), chosen) for line in installed.requires or ()]
    return [found[name] for name in sorted(found)]


def licence_of(installed: Distribution) -> str:
    """Give what a package's metadata say of its licence, in a few words."""
    about = installed.metadata
    classifiers = [line for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    names = [line.rpartition(" :: ")[2] for line in classifiers]
    # several classifiers may mean a choice or not: all are taken to hold
    said = [about.get("License-Expression"), " AND ".join(name for name in names if name != "OSI Approved")]
    for words in (*said, about.get("License")):
        if words and words.strip().lower() != "unknown":
            return words.strip().splitlines()[0]
    return "not stated"


def show(packages: list[Package]) -> None:
    """Print a table."""
    width = max(len(package.name) for package in packages)
    for package in packages:
        print(f"{package.name:{width}}  {package.version:14}  {package.verdict:10}  {package.licence[:_TITLE]}")


def look_for_vulnerabilities(packages: list[Package]) -> int:
    """Ask pip-audit about these very versions: 0 if no fault is known, 1 if one is, 2 if not all could be asked for."""
    if importlib.util.find_spec("pip_audit") is None:
        print("pip-audit is not installed: pip install pip-audit", file=sys.stderr)
        return 2
    there = [package for package in packages if package.version != _NOT_THERE]
    pinned = "".join(f"{package.name}=={package.version.partition('+')[0]}\n" for package in there)
    options = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    command = [sys.executable, "-m", "pip_audit", *options, "--requirement", "/dev/stdin"]
    done = subprocess.run(command, input=pinned, stdout=subprocess.PIPE, text=True, check=False)
    return judge(done.stdout, {package.name for package in packages})


def judge(answer: str, asked: set[str]) -> int:
    """Tell what pip-audit answered; what it passed over counts as not known, though it ends well itself."""
    try:
        found = {canonicalize_name(entry["name"]): entry for entry in json.loads(answer)["dependencies"]}
    except (ValueError, LookupError, TypeError):
        found = {}
    vulnerable = [f"{name}: {fault['id']}" for name in found for fault in found[name].get("vulns", ())]
    unknown = sorted(name for name in asked if "vulns" not in found.get(name, {}))
    for line in vulnerable:
        print(f"vulnerability in {line}", file=sys.stderr)
    if unknown:
        said = f"{len(unknown)} of {len(asked)} packages ({', '.join(unknown[:3])}{', ...' if unknown[3:] else ''})"
        print(f"the database could not be asked about {said}: nothing is known of them", file=sys.stderr)
    elif not vulnerable:
        print(f"no vulnerability is known in {len(asked)} packages")
    return 1 if vulnerable else 2 if unknown else 0


def main() -> int:
    """Run the audit; 1 if a licence must be looked at or a vulnerability is known, 2 if one could not be asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vulnerabilities", action="store_true", help="ask a public database, over the network")
    options = parser.parse_args()
    packages = closure(needed())
    show(packages)
    doubtful = [package.name for package in packages if package.verdict == "LOOK AT IT"]
    if doubtful:
        print(f"licences to look at: {', '.join(doubtful)}", file=sys.stderr)
    found = look_for_vulnerabilities(packages) if options.vulnerabilities else 0
    return found or int(bool(doubtful))


if __name__ == "__main__":
    sys.exit(main())
