"""Ray: ranks as tasks on the nodes of a cluster."""
