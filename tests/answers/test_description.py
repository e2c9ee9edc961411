import json

import pytest

from corrvae.answers.description import describe, model_name
from corrvae.answers.run import Run
from support.runs import make_files, trained


def test_facts_are_those_of_the_run_and_json(tmp_path):
    files = make_files(tmp_path, "pairwise", validation=0.0)
    facts = describe(Run.open(files.run))
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    model = trained("pairwise")
    assert facts["model"]["name"] == "CVAE_corr"
    assert facts["model"]["trainable_numbers"] == sum(p.numel() for p in model.model_.parameters())
    assert facts["data"] == {
        "points": 36,
        "first_ids": ["p0", "p1", "p2"],
        "features": 5,
        "features_have_names": True,
        "features_stored": True,
        "links": 36,
        "links_have_conductances": False,
        "points_without_a_link": 0,
        "connected_parts": 3,
    }
    assert facts["training"]["steps"] == model.n_steps_
    assert facts["training"]["last_terms"]["total"] == pytest.approx(float(model.history_["total"][-1]), rel=1e-8)
    assert facts["folder"]["bytes"] == sum(path.stat().st_size for path in files.run.iterdir())
    (files.run / "checkpoint").mkdir()
    (files.run / "checkpoint" / "step").write_bytes(bytes(1000))
    assert describe(Run.open(files.run))["folder"]["bytes"] == facts["folder"]["bytes"] + 1000
    assert facts["parameters"]["n_components"] == 3
    assert {"python", "corrvae", "torch"} <= facts["versions"].keys()


def test_models_have_the_names_of_the_field():
    assert model_name(Run(trained())) == "CVAE_ind"
    assert model_name(Run(trained(graph=False))) == "VAE"
