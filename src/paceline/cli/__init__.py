"""The command line: one verb per question a user has, each in a file of its own."""
