"""The spanning weights of a graph file as a table of its edges."""

from pathlib import Path
from typing import Any, Literal, cast, get_args

from corrvae.answers.tables import AnswerTable
from corrvae.graphs import CorrelationGraph, spanning_weights
from corrvae.ranks import current_ranks

_Method = Literal["auto", "exact", "sketch", "sample"]


def spanning_table(
    path: Path,
    *,
    method: str = "auto",
    conductance: str | None = None,
    epsilon: float = 0.05,
    seed: int = 0,
    progress: bool | None = None,
) -> AnswerTable:
    r"""Give the edges of a file with their weights, and their standard errors where these are estimates.

    Parameters
    ----------
    path
        The file of edges.
    method, epsilon, progress
        As in `corrvae.spanning_weights`.
    conductance
        The name of the column of conductances.
    seed
        Of what is random.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "edges.csv")
    ...     _ = path.write_text("source,target\na,b\na,c\nb,c\nc,d\n")
    ...     spanning_table(path).columns["weight"].round(3).tolist()
    [0.667, 0.667, 0.667, 1.0]
    """
    if method not in get_args(_Method):
        raise ValueError(f"method must be {', '.join(get_args(_Method)[:-1])} or sample, not {method!r}")
    with current_ranks().agreed():
        graph = CorrelationGraph.from_file(path, conductance=conductance)
    chosen = cast(_Method, method)
    found = spanning_weights(graph, method=chosen, epsilon=epsilon, random_state=seed, progress=progress)
    ids = graph.id_pairs
    columns: dict[str, Any] = {"source": ids[:, 0], "target": ids[:, 1]}
    if graph.conductances is not None:
        columns["conductance"] = graph.conductances
    columns["weight"] = found.weights
    if found.standard_errors is not None:
        columns["standard_error"] = found.standard_errors
    facts = {
        "method": found.method,
        "route": found.route,
        "error": found.error,
        "bound": found.bound,
        "confidence": found.confidence,
    }
    return AnswerTable(columns, facts)
