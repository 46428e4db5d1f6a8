"""SLURM: a run as a batch job, its script, and the queue."""
