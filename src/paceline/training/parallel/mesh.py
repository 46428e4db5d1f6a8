"""The process groups along the axes of a layout."""

from __future__ import annotations

import torch.distributed as dist

from paceline.layout import Layout


def axis_groups(layout: Layout, rank: int) -> dict[str, dist.ProcessGroup]:
    """The group of this process along each axis; empty where there is one axis, which is the group of all ranks.

    Every process of the run has to call this, servers included.
    """
    found: dict[str, dist.ProcessGroup] = {}
    if len(layout.axes) == 1:
        return found
    for axis in layout.axes:
        for members in layout.groups(axis.name):
            group = dist.new_group(list(members))
            if rank in members:
                assert isinstance(group, dist.ProcessGroup)
                found[axis.name] = group
    return found
