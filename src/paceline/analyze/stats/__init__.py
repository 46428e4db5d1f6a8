"""Statistics without a subject: intervals, tests of two samples, equivalence, Student's t."""
