"""The paper's three experiments: tasks (protocol and metric), baselines, recipes, records, tables and report.

`corrvae.experiments.reproduce` runs them (`reproduce`, `demo`), `corrvae.experiments.report` writes the page
(`write_report`). A task is one module with a function `run` (``matching``, ``clustering``, ``links``) and one entry of
`published.TASKS`; a model is one `Entry` of `recipes`.
"""
