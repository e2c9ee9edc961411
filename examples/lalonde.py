"""Estimate what a training programme did to earnings, from people who did not take part in the experiment.

LaLonde's question: the programme was a randomised experiment, so its effect is known. Take its 185 trainees, replace
its controls with 15,992 people of a survey, who earn far more, and match. There is no graph here, and eight covariates
are few enough to be matched on directly: this shows the steps, not a case that needs an embedding.

Run: pip install causaldata; python examples/lalonde.py
"""

import numpy as np
import pandas as pd
from causaldata import cps_mixtape, nsw_mixtape

from corrvae import CorrelatedVAE

experiment, survey = nsw_mixtape.load_pandas().data, cps_mixtape.load_pandas().data
trainees = experiment[experiment["treat"] == 1]
known = trainees["re78"].mean() - experiment.loc[experiment["treat"] == 0, "re78"].mean()
people = pd.concat([trainees, survey], ignore_index=True)
outcome = people["re78"]  # earnings in 1978, after the programme

X = people[["age", "educ", "black", "hisp", "marr", "nodegree", "re74", "re75"]].astype(float)
X["none74"], X["none75"] = (people[["re74", "re75"]] == 0).astype(float).to_numpy().T
left, right = np.arange(len(trainees)), np.arange(len(trainees), len(people))

# Not the programme and not the outcome: only what was there before. The same groups are compared exactly.
model = CorrelatedVAE(4, likelihood="gaussian", max_steps=1000, random_state=0).fit(X)
groups = X[["black", "hisp", "marr", "nodegree", "none74", "none75"]]
matches = model.match(left, right, caliper="0.3sd", exact_on=groups, metric="mean_distance")
balance = matches.balance(X)
effect = matches.effect(outcome, covariates=X)
low, high = effect.interval

print(f"the experiment:    {known:.1f} dollars a year")
print(f"trainees - survey: {outcome[left].mean() - outcome[right].mean():.1f}")
print(f"matched:           {effect.estimate:.1f} ({low:.0f} to {high:.0f}), {effect.n_left} of {len(left)} trainees")
before, after = (np.abs(part).max() for part in (balance.before, balance.after))
print(f"largest difference: {before:.2f} standard deviations before, {after:.2f} after")
