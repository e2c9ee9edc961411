"""Pictures: matplotlib figures of embeddings, training and scores, and one page (`write_page`) that shows a run.

Every ``draw_...`` function takes arrays and returns a `matplotlib.figure.Figure`; `write_page` puts them into one HTML
file that needs no network.
"""

from corrvae.plots.figures import draw_balance as draw_balance
from corrvae.plots.figures import draw_curves as draw_curves
from corrvae.plots.figures import draw_map as draw_map
from corrvae.plots.figures import draw_pairs as draw_pairs
from corrvae.plots.figures import draw_uncertainty as draw_uncertainty
from corrvae.plots.figures import draw_weights as draw_weights
from corrvae.plots.layout import project as project
from corrvae.plots.page import draw_embedding as draw_embedding
from corrvae.plots.page import write_page as write_page
from corrvae.plots.style import COLOURS as COLOURS
from corrvae.plots.style import save_figure as save_figure
from corrvae.plots.style import styled as styled
from corrvae.plots.style import svg_uri as svg_uri
