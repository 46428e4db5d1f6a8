"""The section of a report that compares a study with a published one."""
