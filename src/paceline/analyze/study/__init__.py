"""A study, from its finished runs: one row per point, effects of single factors, phases, findings, live figures."""
