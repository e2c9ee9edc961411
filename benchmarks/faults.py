"""Does anything get lost? Training and saving are killed, starved, damaged and raced; what must hold is checked.

The same functions make the tests of faults, with small numbers. Run as a program, this is the long form: by default 100
kills of training and 100 of saving, and 2,000 damaged files of each kind.
"""

import argparse
import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import fragile
from corrvae import load
from corrvae.cli.run_folder import RunFolder
from corrvae.errors import FolderError
from corrvae.persistence import read_folder
from corrvae.training.checkpoints import KIND as CHECKPOINT
from measure import merged, versions, write_results
from nursery import Call, Ending, Nursery

KILLED = -int(signal.SIGKILL)
STEPS = 20
NEWEST = [f"step-{step:09d}" for step in (STEPS - 1, STEPS)]  # what is left of a run with a checkpoint at every step


def expect(holds: bool, otherwise: str) -> None:
    """Fail loudly, also under ``python -O``."""
    if not holds:
        raise AssertionError(otherwise)


def kill_training(nursery: Nursery, folder: Path, kills: int, seed: int) -> dict:
    """Kill training at random moments; after each, every checkpoint in sight is whole, and the end is the same."""
    generator = np.random.default_rng(seed)
    (whole,) = nursery.run(Call("fragile:train", {"folder": str(folder / "whole"), "steps": STEPS}))
    expect(whole.code == 0, whole.errors)
    run, killed, resumed, finished = folder / "run", 0, 0, 0
    while killed < kills:
        moment = generator.uniform(0.0, 0.7 * whole.seconds)
        (ending,) = nursery.run(Call("fragile:train", {"folder": str(run), "steps": STEPS}, kill_after=moment))
        expect(ending.code in (0, KILLED), f"ended with {ending.code}: {ending.errors}")
        if ending.code == KILLED:
            killed += 1
            resumed += nursery.do("fragile:whole_checkpoints", folder=str(run)) > 0
        else:
            finished += 1
            expect(ending.result == whole.result, "a resumed run ended in other numbers")
            shutil.rmtree(run)
    expect(nursery.do("fragile:train", folder=str(run), steps=STEPS) == whole.result, "the last run differs")
    left = sorted(place.name for place in run.iterdir())
    expect(left == NEWEST, f"left behind: {left}")
    return {"kills": killed, "kills_with_a_checkpoint": resumed, "runs_that_ended": finished + 1}


def kill_saving(nursery: Nursery, folder: Path, kills: int, seed: int) -> dict:
    """Kill a program that saves two models over each other; the folder always holds one of them, whole."""
    generator = np.random.default_rng(seed)
    models = make_models(folder)
    arguments = {"folder": str(folder / "model"), "first": models[0][0], "second": models[1][0], "times": 10**6}
    load(models[0][0]).save(folder / "model")
    found = dict.fromkeys((code for _, code in models), 0)
    saves = 0
    for number in range(kills):
        # loading takes its time: the clock begins with the first save
        saved = folder / f"saved-{number}"
        call = Call(
            "fragile:save",
            arguments | {"saved": str(saved)},
            kill_after=generator.uniform(0.0, 0.15),
            once=str(saved),
        )
        (ending,) = nursery.run(call)
        expect(ending.code == KILLED, f"ended with {ending.code}: {ending.errors}")
        saves += saved.stat().st_size
        code = fragile.digest(load(folder / "model"))
        expect(code in found, "another model than was saved")
        found[code] += 1
    load(models[0][0]).save(folder / "model")
    left = sorted(place.name for place in folder.iterdir() if place.name.startswith("."))
    expect(not left, f"left behind: {left}")
    return {"kills": kills, "saves": saves, "found_each": sorted(found.values())}


def write_files(folder: Path) -> list[str]:
    """Write the data as files; give the arguments of a run of the program on them, but for its folder."""
    counts, graph = fragile.data()
    rows = [",".join([f"v{i}", *map(str, row.astype(int))]) for i, row in enumerate(counts)]
    (folder / "x.csv").write_text("id," + ",".join(f"f{k}" for k in range(counts.shape[1])) + "\n" + "\n".join(rows))
    (folder / "edges.csv").write_text("source,target\n" + "\n".join(f"v{i},v{j}" for i, j in graph.edges))
    options = {"features": folder / "x.csv", "graph": folder / "edges.csv", "components": 2, "hidden": 6, "steps": 12}
    options |= {"vertex-batch": 8, "checkpoint-every": 5, "likelihood": "multinomial", "validation": 0.2}
    return ["fit", "--quiet", *(str(part) for name, value in options.items() for part in (f"--{name}", value))]


def kill_program(
    nursery: Nursery, folder: Path, every: int = 1, only: tuple[int, ...] = (), overwrite: bool = False
) -> dict:
    """Kill `corrvae fit` at each of its file operations (or some); going on gives the files of a whole run.

    With `overwrite` it replaces a run of another seed, which must be there as it was until the new one has a model.
    """
    fit, before = write_files(folder), folder / "before"
    if overwrite:
        expect(_run(nursery, [*fit, "--seed", "1", "--out", str(before)], before, None).code == 0, "no run before")
        fit.append("--overwrite")
    total = _run(nursery, [*fit, "--out", str(_copied(before, folder / "whole"))], folder / "whole", None).result
    wanted, begun_again = _files(folder / "whole"), 0
    # the last ones put the model into its place
    moments = only or sorted({*range(1, total + 1, every), *range(total - 8, total + 1)})
    for at in moments:
        out = _copied(before, folder / f"killed-{at}")
        ending = _run(nursery, [*fit, "--out", str(out)], out, at)
        expect(ending.code == KILLED, f"killed at {at}: {ending.code} {ending.errors}")
        begun = RunFolder(out).is_begun and RunFolder(out).settings()["seed"] == 0
        begun_again += not begun
        if overwrite and not begun:
            expect(_files(before).items() <= _files(out).items(), f"killed at {at}, the run before is not what it was")
        again = ["fit", "--quiet", "--out", str(out), "--resume"] if begun else [*fit, "--out", str(out)]
        ending = _run(nursery, again, out, None)
        expect(ending.code == 0, f"going on after a kill at {at}: {ending.code} {ending.errors}")
        found = _files(out)
        expect(found.keys() == wanted.keys(), f"after a kill at {at} there are {sorted(found)}")
        differing = [name for name in wanted if name != "run.toml" and found[name] != wanted[name]]
        expect(not differing, f"after a kill at {at} other bytes: {differing}")
        shutil.rmtree(out)
    return {"kills": len(moments), "operations": total, "begun_again": begun_again}


def _copied(before: Path, folder: Path) -> Path:
    return shutil.copytree(before, folder) if before.exists() else folder


def _run(nursery: Nursery, arguments: list[str], folder: Path, at: int | None) -> Ending:
    (ending,) = nursery.run(
        Call("fragile:program_killed", {"arguments": arguments, "folder": str(folder), "at": at}, timeout=600.0)
    )
    return ending


def _files(folder: Path) -> dict[str, bytes]:
    return {place.relative_to(folder).as_posix(): place.read_bytes() for place in folder.rglob("*") if place.is_file()}


def make_models(folder: Path) -> list[tuple[str, str]]:
    """Save two models; give their folders and codes."""
    counts, graph = fragile.data()
    made = []
    for seed in (0, 1):
        model = fragile.estimator(4, seed, n_components=2 + seed).fit(counts, graph=graph)
        model.save(folder / f"model-{seed}")
        made.append((str(folder / f"model-{seed}"), fragile.digest(model)))
    return made


def starve(nursery: Nursery, folder: Path, limits: list[int]) -> dict:
    """Let files grow to so many bytes only; the error says so, and the run goes on once there is room."""
    whole = nursery.do("fragile:train", folder=None, steps=STEPS)
    cut = 0
    for limit in limits:
        run = folder / f"run-{limit}"
        nursery.do("fragile:train", folder=str(run), steps=STEPS, give_up_at=5)
        call = Call("fragile:train", {"folder": str(run), "steps": STEPS}, limits={"FSIZE": limit})
        (ending,) = nursery.run(call)
        if ending.code:
            cut += 1
            expect("FolderError" in ending.errors and "File too large" in ending.errors, ending.errors)
        expect(nursery.do("fragile:whole_checkpoints", folder=str(run)) >= 1, "no checkpoint is left")
        expect(nursery.do("fragile:train", folder=str(run), steps=STEPS) == whole, "another end")
        expect(sorted(place.name for place in run.iterdir()) == NEWEST, "a draft was left behind")
    return {"limits": len(limits), "cut_off": cut}


@contextmanager
def small_disk(size: int):
    """A file system of so many bytes; None where it cannot be made."""
    with TemporaryDirectory() as place:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place]
        made = os.name == "posix" and os.geteuid() == 0 and subprocess.run(command, check=False).returncode == 0
        try:
            yield Path(place) if made else None
        finally:
            if made:
                subprocess.run(["umount", place], check=True)


def fill_disk(nursery: Nursery) -> dict:
    """Train on a disk that has no room for a further checkpoint."""
    whole = nursery.do("fragile:train", folder=None, steps=STEPS)
    with small_disk(1 << 18) as disk:
        if disk is None:
            return {"skipped": "a file system cannot be mounted here"}
        nursery.do("fragile:train", folder=str(disk / "run"), steps=STEPS, give_up_at=5)
        room = shutil.disk_usage(disk).free
        (disk / "filler").write_bytes(bytes(room - room % 4096))
        (ending,) = nursery.run(Call("fragile:train", {"folder": str(disk / "run"), "steps": STEPS}))
        expect(ending.code == 1 and "No space left" in ending.errors, f"{ending.code}: {ending.errors}")
        expect(nursery.do("fragile:whole_checkpoints", folder=str(disk / "run")) == 2, "a checkpoint is gone")
        (disk / "filler").unlink()
        expect(nursery.do("fragile:train", folder=str(disk / "run"), steps=STEPS) == whole, "another end")
    return {"cut_off": 1}


def lock_folder(nursery: Nursery, folder: Path) -> dict:
    """Train, save and load where nothing may be written, and in a folder that may not be entered."""
    places, (model, code) = [folder / "locked"], make_models(folder)[0]
    shutil.copytree(model, folder / "locked" / "model")
    for place in places:
        place.chmod(0o555)
    folder.chmod(0o755)
    try:
        train = Call("fragile:train", {"folder": str(places[0] / "run"), "steps": STEPS}, harmless=True)
        arguments = {"folder": str(places[0] / "model"), "first": model, "second": model, "times": 2}
        endings = nursery.run(train, Call("fragile:save", arguments, harmless=True))
        places[0].chmod(0o000)
        endings += nursery.run(train, Call("fragile:recognise", {"folder": str(places[0] / "model")}, harmless=True))
        for ending in endings:
            expect(ending.code == 1, f"ended with {ending.code}")
            expect("FolderError" in ending.errors and "Permission denied" in ending.errors, ending.errors)
            expect(ending.errors.count("Error: ") <= 2, f"another error than ours: {ending.errors}")
        expect(fragile.digest(load(places[0] / "model")) == code, "the model has changed")
    finally:
        for place in places:
            place.chmod(0o755)
    return {"refused": len(endings)}


def damage(folder: Path, times: int, seed: int) -> dict:
    """Cut files short and turn bits over; what is read is refused by name, or is what it was."""
    generator = np.random.default_rng(seed)
    counts, graph = fragile.data()
    model = fragile.estimator(6).fit(counts, graph=graph, checkpoint=folder / "run", checkpoint_steps=3)
    model.save(folder / "model")
    checkpoint = max((folder / "run").iterdir())
    code, refused, same = fragile.digest(model), 0, 0
    document = read_folder(checkpoint, kind=CHECKPOINT).document
    for place in (folder / "model", checkpoint):
        for file in sorted(place.iterdir()):
            whole = file.read_bytes()
            for _ in range(times):
                file.write_bytes(_damaged(whole, generator))
                try:
                    if place == checkpoint:
                        expect(read_folder(place, kind=CHECKPOINT).document == document, "damage was read")
                    else:
                        expect(fragile.digest(load(place)) == code, "damage was read")
                    same += 1
                except FolderError as error:
                    expect(error.path in (file, place), f"{error.path} is named, not {file}")
                    refused += 1
            file.write_bytes(whole)
    return {"refused": refused, "unchanged_in_meaning": same}


def damage_newest(nursery: Nursery, folder: Path, times: int, seed: int) -> dict:
    """Damage the newest checkpoint, by turns in each file; the run goes on from the one before, to the same end."""
    generator = np.random.default_rng(seed)
    whole, set_aside, same = nursery.do("fragile:train", folder=None, steps=STEPS), 0, 0
    nursery.do("fragile:train", folder=str(folder / "run"), steps=STEPS, give_up_at=9)
    files = sorted(file.name for file in max((folder / "run").iterdir()).iterdir())
    for number in range(times):
        run = folder / f"run-{number}"
        shutil.copytree(folder / "run", run)
        file = max(run.iterdir()) / files[number % len(files)]
        data = file.read_bytes()
        # by turns cut off and changed
        cut, changed = data[: generator.integers(0, len(data))], _flipped(data, generator)
        file.write_bytes(cut if number // len(files) % 2 else changed)
        ended = nursery.do("fragile:train_warned", folder=str(run), steps=STEPS)
        expect(ended["code"] == whole, f"another end after damage to {file.name}")
        aside = [place.name for place in run.iterdir() if place.name.startswith("damaged-step-000000008-")]
        named = any("step-000000008" in said and "goes on from step-000000007" in said for said in ended["said"])
        expect(len(aside) == named, f"{aside} were set aside, and this was said: {ended['said']}")
        set_aside, same = set_aside + named, same + (not named)
    return {"set_aside": set_aside, "unchanged_in_meaning": same}


def _damaged(whole: bytes, generator: np.random.Generator) -> bytes:
    if generator.random() < 0.3:
        return whole[: generator.integers(0, len(whole))]
    return _flipped(whole, generator)


def _flipped(whole: bytes, generator: np.random.Generator) -> bytes:
    damaged = bytearray(whole)
    for _ in range(int(generator.integers(1, 4))):
        damaged[generator.integers(0, len(whole))] ^= 1 << int(generator.integers(0, 8))
    if bytes(damaged) == whole:
        damaged[0] ^= 1
    return bytes(damaged)


def race(nursery: Nursery, folder: Path, times: int) -> dict:
    """Let two programs write one folder while a third reads it, and two train with one folder of checkpoints."""
    place = str(folder / "note")
    nursery.do("fragile:write_notes", folder=place, writer=1, times=1)
    writers = [Call("fragile:write_notes", {"folder": place, "writer": k, "times": times}) for k in (1, 2)]
    reader = Call("fragile:read_notes", {"folder": place, "times": times})
    for ending in nursery.run(*writers, reader):
        expect(ending.code == 0, ending.errors)
    expect([found.name for found in folder.iterdir()] == ["note"], "drafts were left behind")
    whole, run = nursery.do("fragile:train", folder=None, steps=STEPS), str(folder / "run")
    trainers = [Call("fragile:train", {"folder": run, "steps": STEPS}) for _ in range(2)]
    watcher = Call("fragile:watch_checkpoints", {"folder": run, "times": times})
    *trained, watched = nursery.run(*trainers, watcher)
    for ending in trained:
        expect(ending.code == 0 and ending.result == whole, f"{ending.code}: {ending.errors}")
    expect(watched.code == 0, watched.errors)
    expect(nursery.do("fragile:train", folder=run, steps=STEPS) == whole, "another end")
    return {"writes": 2 * times, "reads": times, "trainers": 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--damage", type=int, default=250, help="damaged versions of each file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="a fault by its name in the table; others keep their record")
    options = parser.parse_args()
    rows = []
    with Nursery("fragile") as nursery, TemporaryDirectory() as place:
        for name, work in {
            "training killed": lambda folder: kill_training(nursery, folder, options.kills, options.seed),
            "program killed": lambda folder: kill_program(nursery, folder),
            "program killed as it replaces a run": lambda folder: kill_program(nursery, folder, overwrite=True),
            "saving killed": lambda folder: kill_saving(nursery, folder, options.kills, options.seed),
            "files limited in size": lambda folder: starve(nursery, folder, [*range(200, 12_000, 400)]),
            "disk full": lambda folder: fill_disk(nursery),
            "folder read-only": lambda folder: lock_folder(nursery, folder),
            "files damaged": lambda folder: damage(folder, options.damage, options.seed),
            "newest checkpoint damaged": lambda folder: damage_newest(nursery, folder, options.kills, options.seed),
            "folder raced for": lambda folder: race(nursery, folder, 5 * options.kills),
        }.items():
            if options.only and name not in options.only:
                continue
            folder = Path(place, name.replace(" ", "-"))
            folder.mkdir()
            Path(place).chmod(0o755)
            begun = time.monotonic()
            rows.append(
                {"fault": name, **work(folder), "seed": options.seed, "seconds": round(time.monotonic() - begun, 1)}
            )
            print(rows[-1], flush=True)
    write_results(
        "faults",
        merged("faults", "fault", rows),
        command="python benchmarks/faults.py",
        versions=versions("corrvae", "numpy", "torch", "pyarrow", "safetensors"),
    )


if __name__ == "__main__":
    main()
