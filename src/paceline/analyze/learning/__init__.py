"""Learning metrics, from the curves and accuracies of runs.

stable       first epoch from which a curve stays at its plateau; overfitting
targets      time, steps and samples to a target accuracy
faults       diverged and dead runs
noise        the gradient noise scale
lr_advice    a learning rate from range tests
verdicts     all of these for a study, statistical efficiency, comparisons of accuracy
"""
