"""Pages: the report, comparisons, learning-rate range tests, notebooks."""
