import numpy as np

from corrvae.pictures.run_calibration import draw_calibration
from support.markup import parse


def test_the_text_tells_what_the_dots_show():
    svg = draw_calibration(np.array([0.2, 0.5, 0.9]), np.array([0.1, 0.5, 1.0]), np.array([10, 20, 10]), name="c")
    page = parse(svg)
    assert "off by 5 % on average: 0.20 to 0.10; 0.50 to 0.50; 0.90 to 1.00." in page.words
    assert "predicted probability" in page.words
    assert all(name.startswith("c-") for name in page.ids)
