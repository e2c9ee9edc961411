"""What each task measures, how a report describes it, and the paper's numbers (Tang et al., ICML 2019)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import final

# Of the eigenvector that cuts points in two: above this, no second eigenvector stands out from the others.
CLEAR_RESIDUAL = 0.1


@final
@dataclass(frozen=True)
class Published:
    """A score as the paper gives it: mean and standard deviation."""

    mean: float
    stddev: float

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.stddev:.4f}"


@final
@dataclass(frozen=True)
class Task:
    """What a task measures, and what the paper found."""

    name: str
    question: str
    metric: str  # the main score: its name in records,
    metric_name: str  # and in tables
    dataset: str  # of the paper's numbers
    note: str = ""  # how to read the scores
    others: Mapping[str, str] = field(default_factory=dict)  # further scores: name in records to name in tables
    published: Mapping[str, Published] = field(default_factory=dict)  # the paper's numbers by model


_MATCHING = Task(
    name="matching",
    question="Each user's ratings are split into two halves: which half belongs to which?",
    metric="reciprocal_rank",
    metric_name="reciprocal rank",
    dataset="MovieLens-20M",
    note="Each half is ranked among those of its own part: test and validation scores cannot be compared.",
    others={
        "overlap_refused": "overlapping candidates refused",
        "hits_1": "hits@1",
        "hits_10": "hits@10",
        "assigned": "one-to-one",
        "sinkhorn": "Sinkhorn",
        "validation_reciprocal_rank": "validation reciprocal rank",
    },
    published={"vae": Published(0.3498, 0.0167), "ind": Published(0.6608, 0.0066), "corr": Published(0.7129, 0.0096)},
)
_CLUSTERING = Task(
    name="clustering",
    question="Do clusters of the embedding find the groups that the synthetic tree was made of?",
    metric="nmi",
    metric_name="NMI",
    dataset="synthetic tree, 10,000 points",
    note="The residual is the distance of the eigenvector of the cut from an exact one, relative to its eigenvalue: "
    f"above {CLEAR_RESIDUAL} no second eigenvector stands out, and the score means little (no clear cut). "
    "Steps and the size of PCA were chosen on these very data: clustering has no validation part.",
    others={"ari": "ARI", "unit_nmi": "NMI, unit diagonal", "residual": "residual"},
    published={
        "vae": Published(0.0031, 0.0059),
        "sage": Published(0.0945, 0.0607),
        "ind": Published(0.2821, 0.1599),
        "corr": Published(0.2748, 0.0462),
    },
)
_LINKS = Task(
    name="links",
    question="Who is linked with whom? Held-out links are ranked among all candidates.",
    metric="ncrr",
    metric_name="NCRR",
    dataset="Epinions",
    others={
        "mrr": "MRR",
        "hits_10": "hits@10",
        "hits_100": "hits@100",
        "auc": "AUC",
        "ncrr_lone": "NCRR without edges",
        "candidate_recall": "recall of candidates",
        "calibration_error": "calibration error",
        "validation_ncrr": "validation NCRR",
    },
    published={
        "vae": Published(0.0052, 0.0007),
        "sage": Published(0.0115, 0.0025),
        "ind": Published(0.0160, 0.0004),
        "corr": Published(0.0171, 0.0009),
    },
)

_RECOMMEND = Task(
    name="recommend",
    question="What else do users want whom no method was trained on? A fifth of their items is looked for.",
    metric="ndcg_100",
    metric_name="NDCG@100",
    dataset="MovieLens-1M",
    note="Settings were chosen on validation users.",
    others={
        "standard_error": "standard error",
        "recall_20": "recall@20",
        "recall_50": "recall@50",
        "validation_ndcg_100": "validation NDCG@100",
        "ndcg_100_none": "none given",
        "ndcg_100_few": "1 to 4 given",
        "ndcg_100_more": "5 or more given",
    },
)

_ROBUSTNESS = Task(
    name="robustness",
    question="What do wrong edges cost, and are they found? Random edges are added, in percent of the others.",
    metric="auc_30",
    metric_name="AUC of links, 30 % wrong",
    dataset="",
    note="Found: how well small conductances tell the wrong edges from the others (AUC).",
    others={
        **{f"auc_{share}": f"AUC, {share} %" for share in (0, 10, 50)},
        **{f"accuracy_{share}": f"accuracy, {share} %" for share in (0, 10, 30, 50)},
        **{f"nmi_{share}": f"NMI, {share} %" for share in (0, 10, 30, 50)},
        **{f"r2_{share}": f"R², {share} %" for share in (0, 10, 30, 50)},
        **{f"found_{share}": f"found, {share} %" for share in (10, 30, 50)},
    },
)

TASKS: Mapping[str, Task] = MappingProxyType(
    {task.name: task for task in (_MATCHING, _CLUSTERING, _LINKS, _RECOMMEND, _ROBUSTNESS)}
)
RECIPE_TITLES = MappingProxyType(
    {
        "recommended": "recommended recipe",
        "old-protocol": "validation edges uniform and hidden, as before",
        "recommended-two-catalogues": "two catalogues, recommended recipe",
        "paper": "the paper's settings",
        "tree": "on a tree",
        "ciao": "on Ciao",
        "ciao-two-catalogues": "two catalogues",
        "epinions": "recommended recipe",
        "epinions-two-catalogues": "two catalogues",
        "quick": "quick",
        "quick-two-catalogues": "two catalogues, quick",
    }
)
