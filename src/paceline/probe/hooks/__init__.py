"""Where a script meets the probe: the calls of torch that say what it does, watched without a line of it changed."""
