"""Sees every collective of torch.distributed, those that DDP issues from C++ included.

All of them pass through PyTorch's dispatcher as operators `c10d::allreduce_`, `c10d::broadcast_`
and so on. For each a kernel is put at the dispatch key BackendSelect, which is visited before the
device's own and has none for these operators. It notes the call and hands every argument on,
untouched, to the device's kernel: backend, options and results stay as they are. The call is
made without the interpreter's lock: gloo's threads need that lock to drop tensors, and hold
gloo's own while they wait for it. Costs some 40 µs a call and never waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.distributed import ProcessGroup

from paceline.probe.recorder import Recorder

# operator -> position of what this rank sends (or, where it only receives, of what it receives)
_PAYLOAD = {
    "allreduce_": 0,
    "allreduce_coalesced_": 0,
    "broadcast_": 0,
    "reduce_": 0,
    "send": 0,
    "recv_": 0,
    "recv_any_source_": 0,
    "allgather_": 1,
    "_allgather_base_": 1,
    "allgather_coalesced_": 1,
    "allgather_into_tensor_coalesced_": 1,
    "reduce_scatter_": 1,
    "_reduce_scatter_base_": 1,
    "reduce_scatter_tensor_coalesced_": 1,
    "alltoall_": 1,
    "alltoall_base_": 1,
    "gather_": 1,
    "scatter_": 0,
    "barrier": None,
    "monitored_barrier_": None,
}
# message between two -> the argument that names the other one; None where it is not known yet
_POINT_TO_POINT = {"send": "dst", "recv_": "src", "recv_any_source_": None}


def watch_collectives(recorder: Recorder) -> torch.library.Library:
    """Start recording; ends when the returned library is destroyed, so keep it."""
    library = torch.library.Library("c10d", "IMPL")
    for operation in _PAYLOAD:
        library.impl(operation, _watched(recorder, operation), "BackendSelect")
    return library


def _watched(recorder: Recorder, operation: str) -> Callable[..., Any]:
    overload = getattr(torch.ops.c10d, operation).default
    names = [argument.name for argument in overload._schema.arguments]
    group_at, payload_at = names.index("process_group"), _PAYLOAD[operation]
    symmetric = operation not in _POINT_TO_POINT
    peer_name = _POINT_TO_POINT.get(operation)
    peer_at = None if peer_name is None else names.index(peer_name)

    def call(*arguments: Any) -> Any:
        payload = 0 if payload_at is None else _num_bytes(arguments[payload_at])
        group = ProcessGroup.unbox(arguments[group_at]).group_name
        peer = -1 if peer_at is None else arguments[peer_at]
        recorder.collective(operation, payload, group, symmetric=symmetric, peer=peer)
        return overload._op_dk(_device_key(arguments[0]), *arguments)

    return call


def _device_key(value: Any) -> torch._C.DispatchKey:
    """The key of the device that the first tensor of `value` lives on."""
    while not isinstance(value, torch.Tensor):
        value = value[0]
    return torch._C.DispatchKey.CUDA if value.is_cuda else torch._C.DispatchKey.CPU


def _num_bytes(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    return sum(map(_num_bytes, value))
