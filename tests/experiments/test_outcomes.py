from corrvae.experiments.outcomes import Run, keep_quiet


def test_a_run_reports_to_nobody_unless_told():
    run = Run(seed=3)
    assert (run.seed, run.checkpoint) == (3, None)
    assert run.report is keep_quiet
    run.report("training", 1, None)
