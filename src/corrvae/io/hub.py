"""Model folders on the Hugging Face Hub, through huggingface_hub (extra ``[hub]``)."""

import os
import warnings
from pathlib import Path

from corrvae.errors import FolderError
from corrvae.io.folder import CONFIG, _read_config, _stem, lock_folder

_CARD = """---
library_name: corrvae
---
A correlated variational auto-encoder: `corrvae.load(corrvae.io.from_hub("{repo}"))`.
"""


def push_to_hub(
    path: str | os.PathLike[str],
    repo: str,
    *,
    private: bool = True,
    token: str | None = None,
    endpoint: str | None = None,
) -> str:
    """Upload a model's folder in one commit, and return the commit's address.

    The repository, such as "ann/music", is made if needed; `private`: only its owners see it. The folder, which
    `CorrelatedVAE.save` or ``corrvae fit`` wrote, holds ids, graph and, unless it was saved with
    ``store_features=False``, the training features. Access token and address (`endpoint`) of the hub are by default
    those that huggingface_hub is set up with.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    folder, api = Path(path), HfApi(endpoint, token)
    if _read_config(folder) is None:
        raise FolderError(folder, f"there is no {CONFIG} in it, so it holds no model")
    with lock_folder(folder):  # all files are of one generation
        names = [CONFIG, *(_read_config(folder) or {"files": ()})["files"]]
        api.create_repo(repo, private=private, exist_ok=True)
        there = api.list_repo_files(repo)
        changes: list[CommitOperationAdd | CommitOperationDelete] = [
            CommitOperationAdd(name, folder / name) for name in names
        ]
        changes += [CommitOperationDelete(name) for name in there if _stem(name) and name not in names]
        if "README.md" not in there:
            changes.append(CommitOperationAdd("README.md", _CARD.format(repo=repo).encode()))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "It seems that you are about to commit a data file")  # the ids
            return api.create_commit(repo, changes, commit_message="Upload a model of corrvae").commit_url


def from_hub(
    repo: str,
    *,
    revision: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
    cache_dir: str | Path | None = None,
) -> Path:
    """Download a model's folder and return where it is, for `corrvae.load`; files that are there stay.

    `revision` is a branch, tag or commit. Access token, address of the hub and the folder of files are by default as
    huggingface_hub is set up.
    """
    from huggingface_hub import HfApi

    wanted = [CONFIG, "*.safetensors", "*.npy", "*.parquet"]
    found = HfApi(endpoint, token).snapshot_download(
        repo, revision=revision, allow_patterns=wanted, cache_dir=cache_dir
    )
    return Path(str(found))
