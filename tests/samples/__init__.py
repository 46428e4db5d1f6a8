"""Made-up studies, runs, traces and files that tests read."""
