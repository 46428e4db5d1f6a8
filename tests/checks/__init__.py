"""Checks that several folders of tests share."""
