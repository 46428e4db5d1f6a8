"""Learning, measured: records of curves in, records of what they show out.

stable      first epoch from which a curve stays at its plateau          targets    time and steps to an accuracy
turns       overfitting                                                  faults     diverged and dead runs, by name
efficiency  statistical efficiency, effective speed-up                   equivalence   different, equal, or neither
curves      arrays of curves, means with bands                           students_t   the distribution behind the tests
noise       the gradient noise scale                                     lr_range   what a range test says
verdicts    all of it for a study
"""
