"""The command line: one file per verb, which parses options, calls `paceline.app` and prints."""
