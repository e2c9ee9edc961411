"""Does a kill lose anything? Training with checkpoints, and saving over a model, are killed at random moments.

    python benchmarks/faults.py [--kills 100] [--seed 0]

After every kill of training the run is resumed, and at its end it must have the bits of a run that was not interrupted.
After every kill of saving the folder must hold the old or the new model, whole. The tests do the same with ten kills.
"""

import argparse
import re
import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import fragile
from corrvae import load
from fragile import KILLED, Helper
from measure import versions, write_results

STEPS = 20


def expect(holds: bool, otherwise: str) -> None:
    """Fail loudly, also under ``python -O``."""
    if not holds:
        raise AssertionError(otherwise)


def names(folder: Path) -> list[str]:
    """Return the names of a folder's files without their generation, so that files of two generations stand out."""
    return sorted(re.sub(r"-\d+\.", ".", place.name) for place in folder.iterdir())


def kill_training(helper: Helper, folder: Path, kills: int, seed: int) -> dict:
    """Kill training again and again; every run that gets to its end has the bits of one that was not killed."""
    generator = np.random.default_rng(seed)
    begun = time.monotonic()
    whole = helper.run(fragile.train, folder=str(folder / "whole"), steps=STEPS)
    expect(whole.code == 0, str(whole.result))
    step = (time.monotonic() - begun) / STEPS
    killed = resumed = ended = 0
    while killed < kills:
        there = (folder / "run" / "config.json").exists()
        # Most runs make some steps and are killed within the next one, or while its checkpoint is written.
        ending = helper.run(
            fragile.train,
            folder=str(folder / "run"),
            steps=STEPS,
            beats=int(generator.integers(0, 8)),
            moment=generator.uniform(0.0, step),
        )
        expect(ending.code in (0, KILLED), f"ended with {ending.code}: {ending.result}")
        killed += ending.code == KILLED
        resumed += there
        if ending.code == 0:
            ended += 1
            expect(ending.result == whole.result, "a resumed run ended in other bits")
            shutil.rmtree(folder / "run")
    last = helper.run(fragile.train, folder=str(folder / "run"), steps=STEPS)
    expect(last == whole, f"the last run ended otherwise: {last}")
    expect(names(folder / "run") == names(folder / "whole"), f"left behind: {names(folder / 'run')}")
    return {"fault": "training killed", "kills": killed, "resumed": resumed, "ended": ended + 1}


def kill_saving(helper: Helper, folder: Path, kills: int, seed: int) -> dict:
    """Kill a program that saves two models over each other; the folder always holds one of them, whole."""
    generator = np.random.default_rng(seed)
    counts, graph = fragile.data()
    codes = {}
    for seed_of_model in (0, 1):
        model = fragile.estimator(4, random_state=seed_of_model, n_components=2 + seed_of_model)
        model.fit(counts, graph=graph).save(folder / f"model-{seed_of_model}")
        codes[fragile.digest(load(folder / f"model-{seed_of_model}"))] = 0
    begun = time.monotonic()
    model.save(folder / "model")
    once = time.monotonic() - begun
    given = {"folder": str(folder / "model"), "models": [str(folder / f"model-{k}") for k in (0, 1)]}
    for _ in range(kills):
        beats, moment = int(generator.integers(1, 4)), generator.uniform(0.0, 1.5 * once)
        ending = helper.run(fragile.save, beats=beats, moment=moment, **given)
        expect(ending.code == KILLED, f"ended with {ending.code}: {ending.result}")
        code = fragile.digest(load(folder / "model"))
        expect(code in codes, "another model than was saved")
        codes[code] += 1
    model.save(folder / "model")
    expect(names(folder / "model") == names(folder / "model-1"), f"left behind: {names(folder / 'model')}")
    return {"fault": "saving killed", "kills": kills, "found_each": sorted(codes.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-record", action="store_true", help="leave benchmarks/results/faults.json as it is")
    options = parser.parse_args()
    rows = []
    with Helper() as helper:
        for work in (kill_training, kill_saving):
            with TemporaryDirectory() as place:
                begun = time.monotonic()
                row = work(helper, Path(place), options.kills, options.seed)
                rows.append({**row, "seed": options.seed, "seconds": round(time.monotonic() - begun, 1)})
                print(rows[-1], flush=True)
    if not options.no_record:
        found = versions("corrvae", "numpy", "torch", "safetensors")
        write_results("faults", rows, command=f"python benchmarks/faults.py --kills {options.kills}", versions=found)


if __name__ == "__main__":
    main()
