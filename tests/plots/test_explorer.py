import base64
import http.client
import json
import re
import threading
from copy import copy
from hashlib import sha256

import numpy as np
import pytest

from corrvae import CorrelatedVAE
from corrvae.plots.explorer import page, serve_explorer, write_explorer
from corrvae.plots.explorer.guide import N_LINKS, N_NEIGHBORS, Guide
from corrvae.plots.facts import group_points
from corrvae.scoring import METRICS
from support.browser import Browser
from support.markup import parse
from support.runs import IDS, N_POINTS, literal_scores, trained

NASTY = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;"
LABELS = {"town": ["Rome", "Oslo", None] * 12, "age": [20.5 + k for k in range(N_POINTS)]}


def decoded(text):
    """The document of a page, and its arrays."""
    blocks = re.findall(r'<script type="text/plain" id="block-(\w+)" data-kind="(\w+)Array">([^<]*)<', text)
    document = json.loads(re.search(r'id="facts">(.*?)</script>', text, re.DOTALL)[1])
    return document, {name: np.frombuffer(base64.b64decode(data), kind.lower()) for name, kind, data in blocks}


def write(model, path, **options):
    write_explorer(model, path, **options)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pairwise(tmp_path_factory):
    return write(trained("pairwise"), tmp_path_factory.mktemp("map") / "map.html", labels=LABELS, title="Places")


# ---- what is said


@pytest.mark.parametrize("family", ["independent", "pairwise"])
def test_neighbours_and_likely_links_are_those_of_all_pairs(family):
    model = trained(family)
    guide, near = Guide(model), Guide(model).near()
    everybody = np.array([(i, j) for i in range(N_POINTS) for j in range(N_POINTS) if i != j])
    scores = np.full((N_POINTS, N_POINTS), np.nan)
    scores[tuple(everybody.T)] = literal_scores(model, guide.metric, everybody)
    sign = -1 if METRICS[guide.metric].larger_is_better else 1
    best = np.sort(sign * scores, axis=1)[:, :N_NEIGHBORS]
    np.testing.assert_allclose(sign * near.scores, best, rtol=1e-4, atol=1e-4)
    linked = model.graph_.to_scipy().toarray() > 0
    best = np.sort(np.where(linked, np.nan, sign * scores), axis=1)[:, :N_LINKS]
    np.testing.assert_allclose(sign * near.link_scores, best, rtol=1e-4, atol=1e-4)
    assert not linked[np.arange(N_POINTS)[:, None], near.links].any()
    some = guide.near(np.array([7, 3]))
    np.testing.assert_array_equal(some.neighbors, near.neighbors[[7, 3]])
    np.testing.assert_array_equal(some.links, near.links[[7, 3]])


def test_a_point_linked_to_all_has_no_likely_links():
    star = [(0, k) for k in range(1, 6)]
    model = CorrelatedVAE(2, hidden=(4,), max_steps=2, random_state=0).fit(np.eye(6), graph=np.array(star).T)
    assert (Guide(model).near().links[0] == -1).all()


def test_what_is_typical_differs_most_from_the_average():
    counts = np.random.default_rng(0).poisson(2.0, (50, 9))
    model = CorrelatedVAE(2, likelihood="poisson", hidden=(6,), max_steps=30, random_state=0).fit(counts)
    guide, rows = Guide(model), np.array([4, 9])
    expected = model.model_.decode(model.embedding_, None, model.model_.likelihood.mean).astype(np.float64)
    average = expected.mean(axis=0)
    features, amounts = guide.typical(rows)
    strength = expected[rows] * np.log(expected[rows] / average)
    np.testing.assert_array_equal(features, np.argsort(-strength, axis=1)[:, :6])
    np.testing.assert_allclose(amounts, np.take_along_axis(expected[rows] / average, features, axis=1), rtol=1e-4)
    real = Guide(trained())
    features, amounts = real.typical(np.arange(3))
    away = real.expected(np.arange(N_POINTS))
    away = away[:3] - away.mean(axis=0)
    np.testing.assert_array_equal(features[:, 0], np.abs(away).argmax(axis=1))
    np.testing.assert_allclose(amounts[:, 0], away[np.arange(3), features[:, 0]], rtol=1e-4)


def test_recommendations_are_those_of_the_model():
    counts = np.random.default_rng(0).poisson(0.7, (30, 9))
    model = CorrelatedVAE(2, likelihood="poisson", hidden=(6,), max_steps=20, random_state=0).fit(counts)
    features, scores = Guide(model).recommended(np.array([4, 9]))
    ids, expected = model.recommend(ids=[4, 9], k=6)
    np.testing.assert_array_equal(features, np.where(np.equal(ids, None), -1, ids).astype(int))
    np.testing.assert_array_equal(scores, expected)
    assert (counts[[[4], [9]], features] * (features >= 0) == 0).all()
    assert Guide(trained()).recommended(np.arange(2)) is None  # real numbers


def test_probabilities_are_learned_from_the_links(tmp_path):
    assert Guide(trained(graph=False)).probability is None
    assert Guide(trained()).probability is None  # 36 links are few
    ring = np.array([(i, (i + 1) % 60) for i in range(60)])
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = CorrelatedVAE(2, max_steps=5, random_state=0).fit(X, graph=ring.T)
    guide = Guide(model)
    assert guide.probability.prior == pytest.approx(60 / (60 * 59 / 2))
    assert not guide.held_out
    document, arrays = decoded(write(model, tmp_path / "map.html"))
    assert document["probabilities"] == "training"
    near = guide.near()
    expected = guide.probability(near.scores[7])
    np.testing.assert_allclose(arrays["probabilities"].reshape(60, -1)[7], expected, rtol=1e-5)


def test_the_number_of_groups_is_that_which_sets_points_apart():
    corners = 9 * np.eye(4)[np.random.default_rng(0).permutation(np.repeat(np.arange(4), [30, 20, 20, 10]))]
    groups = group_points(corners + np.random.default_rng(1).normal(size=(80, 4)))
    assert np.bincount(groups).tolist() == [30, 20, 20, 10]
    assert len(set(map(tuple, np.column_stack([groups, corners.argmax(axis=1)])))) == 4
    assert group_points(np.zeros((5, 2))).tolist() == [0] * 5
    assert len(set(group_points(corners, 3).tolist())) == 3


# ---- the page


def test_the_page_holds_what_the_model_knows(pairwise):
    model = trained("pairwise")
    document, arrays = decoded(pairwise)
    near = Guide(model).near()
    assert document["ids"] == IDS
    assert document["features"] == [f"f{k}" for k in range(5)]
    assert document["columns"] == [{"name": "town", "kinds": ["Rome", "Oslo"]}, {"name": "age", "kinds": None}]
    np.testing.assert_array_equal(arrays["neighbors"].reshape(N_POINTS, -1), near.neighbors)
    np.testing.assert_allclose(arrays["scores"].reshape(N_POINTS, -1), near.scores, rtol=1e-6)
    np.testing.assert_array_equal(arrays["edges"].reshape(-1, 2), model.graph_.edges)
    np.testing.assert_array_equal(arrays["column0"], [0, 1, -1] * 12)
    pairs = [(IDS[5], IDS[near.neighbors[5, k]]) for k in range(N_NEIGHBORS)]
    rho = model.posterior().correlation(pairs).mean(axis=1)
    np.testing.assert_allclose(arrays["correlations"].reshape(N_POINTS, -1)[5], rho, rtol=1e-5)


def test_nothing_is_loaded_from_elsewhere(pairwise):
    found = parse(pairwise)
    named = [value for _, a in found.elements for key, value in a.items() if key in ("src", "href")]
    assert named == ["data:,"]
    script = re.search(r"<script>(.*)</script>", pairwise, re.DOTALL)[1]
    policy = found.all("meta")[1]["content"]
    assert f"script-src 'sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy
    assert "http:" not in pairwise
    assert "https:" not in pairwise


def test_the_same_run_gives_the_same_page(pairwise, tmp_path):
    assert write(trained("pairwise"), tmp_path / "again.html", labels=LABELS, title="Places") == pairwise


def test_words_of_users_stay_words(tmp_path):
    model = CorrelatedVAE(2, max_steps=2, random_state=0).fit(np.eye(3), ids=["</script>", NASTY, "c"])
    text = write(model, tmp_path / "map.html", title=NASTY, labels={NASTY: [NASTY] * 3})
    assert all(script.get("type") for script in parse(text).all("script")[:-1])
    assert "<img" not in text
    assert "<script>alert" not in text
    document, _ = decoded(text)
    assert document["ids"] == ["</script>", NASTY, "c"]
    assert document["columns"] == [{"name": NASTY, "kinds": [NASTY]}]


def test_too_many_points_are_to_be_served(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "MAX_POINTS", 30)
    with pytest.raises(ValueError, match="--serve"):
        write_explorer(trained(), tmp_path / "map.html")
    with pytest.raises(ValueError, match="layout must be one of"):
        serve_explorer(trained(), layout="tsne")


# ---- the server


@pytest.fixture(scope="module")
def served():
    server = serve_explorer(trained("pairwise"), title="Served")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def ask(port, path, *, host=None, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Host": host or f"127.0.0.1:{port}"}
    connection.request("GET" if body is None else "POST", path, body, headers)
    answer = connection.getresponse()
    code, text = answer.status, answer.read().decode()
    connection.close()
    return code, text


def test_the_server_answers_as_the_page_does(served, pairwise):
    _, arrays = decoded(pairwise)
    code, text = ask(served, "/points/5")
    assert code == 200
    for name, values in json.loads(text).items():
        np.testing.assert_allclose(values, arrays[name].reshape(N_POINTS, -1)[5], rtol=1e-4, atol=1e-5)
    document, blocks = decoded(ask(served, "/")[1])
    assert document["served"]
    assert set(blocks) == {"places", "spread", "clusters", "edges"}
    code, text = ask(served, "/group", body=np.array([0, 3, 6], "<u4").tobytes())
    assert code == 200
    mean = trained("pairwise").embedding_[[0, 3, 6]]
    central = np.square(mean - mean.mean(axis=0)).sum(axis=1).argmin()
    assert json.loads(text)["central"][0] == [0, 3, 6][central]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""])
def test_other_names_are_not_answered(served, host):
    code, text = ask(served, "/", host=host.format(port=served) or " ")
    assert code == 403
    assert "facts" not in text
    assert ask(served, "/", host=f"localhost:{served}")[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/etc/passwd",
        "//etc/passwd",
        "/points/36",
        "/points/-1",
        "/points/../0",
        "/points/",
        "/group",
    ],
)
def test_other_paths_are_not_found(served, path):
    assert ask(served, path) == (404, "not found")
    assert ask(served, "/group", body=np.array([36], "<u4").tobytes()) == (404, "not found")


# ---- in a browser

ENTER, ESCAPE, RIGHT, LEFT, UP, DOWN = "\ue007", "\ue00c", "\ue014", "\ue012", "\ue013", "\ue015"
TITLE = "document.querySelector('#panel h2')?.textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile"), size=(1200, 900)) as found:
        yield found


def place_of(browser, point):
    """Where a point is in the window: under a pointer that moves there, its ring is drawn."""
    return browser.run(
        """const places = arguments[0], box = document.getElementById('map').getBoundingClientRect();
        const [xs, ys] = [0, 1].map((c) => places.filter((_, k) => k % 2 === c));
        const range = (v) => [Math.min(...v), Math.max(...v)], [[l, r], [b, t]] = [range(xs), range(ys)];
        const unit = 0.92 * Math.min(box.width / (r - l), box.height / (t - b)), i = arguments[1];
        return [box.left + box.width / 2 + (xs[i] - (l + r) / 2) * unit,
                box.top + box.height / 2 - (ys[i] - (b + t) / 2) * unit];""",
        *point,
    )


def test_points_are_found_selected_and_walked(browser, pairwise, tmp_path):
    file = tmp_path / "map.html"
    file.write_text(pairwise, encoding="utf-8")
    _, arrays = decoded(pairwise)
    places, near = arrays["places"].reshape(-1, 2), arrays["neighbors"].reshape(N_POINTS, -1)
    browser.open(file.as_uri())
    browser.wait("document.documentElement.dataset.painted")
    assert browser.wait(TITLE) == "36 points"
    # search
    browser.press("/", *"p12", ENTER)
    browser.wait(f"{TITLE} === 'p12'")
    listed = browser.run("return [...document.querySelectorAll('#panel tbody tr button')].map((b) => b.textContent)")
    assert listed[:N_NEIGHBORS] == [IDS[j] for j in near[12]]
    assert "point=p12" in browser.wait("location.hash")
    # walk: to the neighbour or linked point in the direction of the arrow
    linked = [9, 15]
    others = np.array([*{*near[12].tolist(), *linked}])
    way = places[others] - places[12]
    along = way / np.linalg.norm(way, axis=1, keepdims=True)
    key, scores = max(((RIGHT, along[:, 0]), (UP, along[:, 1])), key=lambda pair: pair[1].max())
    browser.press(key)
    browser.wait(f"{TITLE} === '{IDS[others[scores.argmax()]]}'")
    # clear, then click
    browser.press(ESCAPE)
    browser.wait(f"{TITLE} === '36 points'")
    browser.press("0")
    lone = int(np.argmax(places[:, 0]))
    browser.drag(place_of(browser, (places.ravel().tolist(), lone)))
    browser.wait(f"{TITLE} === '{IDS[lone]}'")
    # nothing but the page was asked for, nothing went wrong, WebGL included
    assert browser.requests == [file.as_uri()]
    assert [entry for entry in browser.log("browser") if "GPU stall" not in entry["message"]] == []


def test_groups_colours_and_the_address(browser, pairwise, tmp_path):
    file = tmp_path / "map.html"
    file.write_text(pairwise, encoding="utf-8")
    document, arrays = decoded(pairwise)
    browser.open(file.as_uri() + "#color=column0&theme=dark")
    browser.wait("document.documentElement.dataset.painted")
    assert browser.run("return getComputedStyle(document.body).colorScheme") == "dark"
    assert browser.run("return document.querySelector('.legend').innerText").split() == ["Rome", "12", "Oslo", "12"]
    browser.run("document.querySelector('.legend button').click()")
    browser.wait(f"{TITLE} === 'Rome'")
    rows = browser.run("return [...document.querySelectorAll('#list tbody tr')].map((r) => r.children[0].textContent)")
    assert rows == IDS[::3]
    # a lasso around most of it
    box = browser.run("return Object.values(document.getElementById('map').getBoundingClientRect().toJSON())")
    x, y, width, height = box[:4]
    browser.run("document.getElementById('lasso').click()")
    corners = [(x + 9, y + 9), (x + width - 9, y + 9), (x + width - 9, y + height - 60), (x + 9, y + height - 60)]
    browser.drag(*corners, corners[0])
    browser.wait(f"{TITLE} === 'Lasso'")
    browser.run("document.getElementById('more').click()")
    words = browser.run("return document.getElementById('panel').innerText")
    rows = browser.run("return [...document.querySelectorAll('#list tbody button')].map((r) => r.textContent)")
    members = [point for point in np.argsort(-arrays["spread"], kind="stable") if IDS[point] in rows]
    least = [IDS[point] for point in members[:6]]
    assert words.rpartition("Least certain")[2].split() == least
    # the address restores it
    address = browser.wait("location.hash.includes('lasso') && location.href")
    browser.open("about:blank")
    browser.open(address)
    browser.wait(f"{TITLE} === 'Lasso'")
    browser.open("about:blank")
    browser.open(file.as_uri() + "#group=cluster:0")
    browser.wait(f"{TITLE} === {json.dumps(document['clusters'][0]['name'])}")


def test_links_that_the_data_do_not_support_are_named_and_drawn_thin(browser, tmp_path):
    model = copy(trained())
    conductances = np.ones(model.graph_.n_edges)
    (doubted,) = np.flatnonzero((model.graph_.edges == [0, 3]).all(axis=1))
    conductances[doubted] = 0.01
    model.conductances_ = conductances
    file = tmp_path / "map.html"
    assert decoded(write(model, file))[1]["doubts"].nonzero()[0].tolist() == [doubted]
    browser.open(file.as_uri() + "#point=p0")
    browser.wait(f"{TITLE} === 'p0'")
    words = browser.run("return document.getElementById('panel').innerText")
    assert words.partition("the data do not support them:")[2].split()[0] == "p3"
    model.graph_ = model.graph_.with_conductances(conductances)  # given so, not adapted
    assert not decoded(write(model, file))[1]["doubts"].any()
    browser.open("about:blank")
    browser.open(file.as_uri() + "#point=p6")
    browser.wait(f"{TITLE} === 'p6'")
    assert "do not support" not in browser.run("return document.getElementById('panel').innerText")
    assert [entry for entry in browser.log("browser") if "GPU stall" not in entry["message"]] == []


def test_a_served_map_asks_its_server(browser, served):
    browser.open(f"http://localhost:{served}/#point=p5")
    browser.wait(f"{TITLE} === 'p5'")
    assert f"http://localhost:{served}/points/5" in browser.requests
    browser.run("document.querySelector('#panel dd button').click()")
    browser.wait("document.querySelector('#panel').innerText.includes('Most central')")


def test_a_phone_shows_the_map_and_then_the_details(browser, pairwise, tmp_path):
    file = tmp_path / "map.html"
    file.write_text(pairwise, encoding="utf-8")
    browser.resize(500, 900)
    browser.open(file.as_uri() + "#point=p3")
    browser.wait(f"{TITLE} === 'p3'")
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    box = "return document.getElementById(arguments[0]).getBoundingClientRect().toJSON()"
    assert browser.run(box, "panel")["top"] >= browser.run(box, "map")["bottom"]
