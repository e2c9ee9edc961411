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
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Licences that allow use in any program, closed ones too, without conditions on that program.
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|HPND|Unlicense|CC0|0BSD|PIL|Boost|BSL-1\.0)\b", re.I
)
# Each part of the file stays under its licence when it is changed; what uses it does not come under it.
LIMITED = re.compile(r"\b(MPL|Mozilla|LGPL|Lesser)\b|runtime library exception|GCC-exception", re.I)
_TITLE = 100


@dataclass(frozen=True)
class Package:
    """An installed package, with what its metadata say of its licence."""

    name: str
    version: str
    licence: str

    @property
    def verdict(self) -> str:
        """Whether the licence is permissive, limited to the package's own files, or to be looked at.

        All parts of a licence that are joined by AND count, and the best of those joined by OR.
        """
        parts = [min(map(_rank, part.split(" OR "))) for part in self.licence.split(" AND ")]
        return _VERDICTS[max(parts)]


_VERDICTS = ("permissive", "limited", "LOOK AT IT")


def _rank(licence: str) -> int:
    # first, since a lesser licence has the name of a stricter one in it
    if LIMITED.search(licence):
        return 1
    return 0 if PERMISSIVE.search(licence) else 2


def closure(root: str, extras: frozenset[str] = frozenset()) -> list[Package]:
    """Give the packages that a package needs here, directly or not, in the order of their names."""
    found: dict[str, Package] = {}
    waiting = [(root, extras)]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, chosen = waiting.pop()
        key = canonicalize_name(name), chosen
        if key in seen:
            continue
        seen.add(key)
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            continue  # needed elsewhere only, or not installed
        if key[0] != canonicalize_name(root):
            found[key[0]] = Package(key[0], installed.version, licence_of(installed))
        for line in installed.requires or ():
            needed = Requirement(line)
            wanted = needed.marker is None or any(needed.marker.evaluate({"extra": e}) for e in ("", *chosen))
            if wanted:
                waiting.append((needed.name, frozenset(needed.extras)))
    return [found[name] for name in sorted(found)]


def licence_of(installed: Distribution) -> str:
    """Give what a package's metadata say of its licence, in a few words."""
    about = installed.metadata
    classifiers = [line for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    said = [
        about.get("License-Expression"),
        *(line.rpartition(" :: ")[2] for line in classifiers),
        about.get("License"),
    ]
    for words in said:
        if words and words.strip().lower() not in ("unknown", "osi approved", "other/proprietary license"):
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
    pinned = "".join(f"{package.name}=={package.version.partition('+')[0]}\n" for package in packages)
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
    packages = closure("corrvae")
    show(packages)
    doubtful = [package.name for package in packages if package.verdict == "LOOK AT IT"]
    if doubtful:
        print(f"licences to look at: {', '.join(doubtful)}", file=sys.stderr)
    found = look_for_vulnerabilities(packages) if options.vulnerabilities else 0
    return found or int(bool(doubtful))


if __name__ == "__main__":
    sys.exit(main())
