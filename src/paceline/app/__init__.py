"""What Python and the command line share: one module per question that a user has. The command line parses, calls and prints."""
