"""Clusters and hosts on this machine that tests launch on."""
