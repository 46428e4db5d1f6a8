"""Starting, monitoring and terminating ranks: one module or package per launcher, and shared modules."""
