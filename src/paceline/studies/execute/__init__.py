"""Points become runs: preflight, launch, composed results, budget, resume."""
