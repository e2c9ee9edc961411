"""The explorer: a page on which the points of a model are searched, selected and compared.

`write_explorer` makes one HTML file that needs no network; `serve_explorer` shows larger models from a local server.
"""

from corrvae.plots.explorer.page import MAX_POINTS as MAX_POINTS
from corrvae.plots.explorer.page import write_explorer as write_explorer
from corrvae.plots.explorer.server import serve_explorer as serve_explorer
