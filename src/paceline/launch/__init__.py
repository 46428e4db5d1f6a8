"""Starting, monitoring and terminating ranks: one module or package per launcher, shared parts beside it."""
