"""The numbers of the paper (Tang, Liang, Jebara and Ruozzi, ICML 2019), and what each task reports."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

# Of a cut's eigenvector: above, no second eigenvector stands out from the others.
CLEAR_RESIDUAL = 0.1


@final
@dataclass(frozen=True)
class Published:
    """A score as the paper gives it: mean and standard deviation.

    Examples
    --------
    >>> str(Published(0.3498, 0.0167))
    '0.3498 ± 0.0167'
    """

    mean: float
    stddev: float

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.stddev:.4f}"


@final
@dataclass(frozen=True)
class Task:
    """What a task measures, and what the paper found.

    Attributes
    ----------
    name
        "clustering", "links" or "matching".
    metric, metric_name
        The score that decides, as records call it and as people do.
    others
        Further scores that tables show: their name in records to that for people.
    dataset
        What the paper's numbers are of.
    published
        The paper's numbers by model.
    """

    name: str
    metric: str
    metric_name: str
    others: Mapping[str, str]
    dataset: str
    published: Mapping[str, Published]


_CLUSTERING = Task(
    name="clustering",
    metric="nmi",
    metric_name="NMI",
    others=MappingProxyType({"ari": "ARI", "unit_nmi": "NMI, unit diagonal", "residual": "residual"}),
    dataset="synthetic tree, 10,000 points",
    published=MappingProxyType(
        {
            "vae": Published(0.0031, 0.0059),
            "sage": Published(0.0945, 0.0607),
            "ind": Published(0.2821, 0.1599),
            "corr": Published(0.2748, 0.0462),
        }
    ),
)
_LINKS = Task(
    name="links",
    metric="ncrr",
    metric_name="NCRR",
    others=MappingProxyType(
        {"mrr": "MRR", "hits_10": "hits@10", "hits_100": "hits@100", "auc": "AUC", "validation_ncrr": "validation NCRR"}
    ),
    dataset="Epinions",
    published=MappingProxyType(
        {
            "vae": Published(0.0052, 0.0007),
            "sage": Published(0.0115, 0.0025),
            "ind": Published(0.0160, 0.0004),
            "corr": Published(0.0171, 0.0009),
        }
    ),
)
_MATCHING = Task(
    name="matching",
    metric="reciprocal_rank",
    metric_name="reciprocal rank",
    others=MappingProxyType(
        {"hits_1": "hits@1", "hits_10": "hits@10", "validation_reciprocal_rank": "validation reciprocal rank"}
    ),
    dataset="MovieLens-20M",
    published=MappingProxyType(
        {"vae": Published(0.3498, 0.0167), "ind": Published(0.6608, 0.0066), "corr": Published(0.7129, 0.0096)}
    ),
)

TASKS: Mapping[str, Task] = MappingProxyType({task.name: task for task in (_CLUSTERING, _LINKS, _MATCHING)})
