"""The points of a study, from their finished runs.

timing        which epochs of a run are timed, samples per second
series        which points form a line over ranks, and their baseline
speedups      series side by side at equal ranks
median_run    the run that represents a point: ledger, cost of the loop, messages per step
losses        share of the loop time that each ledger kind lost against the baseline
step_time     seconds of one step
scaling_laws  Amdahl's, Gustafson's and the Universal Scalability Law, fitted: law_forms, law_fit
"""
