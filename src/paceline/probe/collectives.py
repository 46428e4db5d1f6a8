"""Records every collective of torch.distributed, including those that DDP issues from C++.

All of them pass through PyTorch's dispatcher as operators `c10d::allreduce_`, `c10d::broadcast_` and so on. For each a
kernel is registered at the dispatch key BackendSelect, which comes before the device's key and has no other kernel for
these operators. It records the call and passes every argument unchanged to the device's kernel. That call releases the
GIL: threads of gloo need the GIL to free tensors, and hold a lock of gloo while they wait for it. It never waits.

The end of a message is recorded by a callback of its Work, which a thread of the backend calls when the result is there
and it has the GIL: at the end or later, never before. On a GPU that would be the end of queueing: it is not recorded.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work
from torch.distributed import ProcessGroup

from paceline.probe.recorder import Recorder

# operator -> position of the tensors that this rank sends, or of those that it receives if it only receives
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
# point-to-point operator -> the argument with the other rank; None if that is not known yet
_POINT_TO_POINT = {"send": "dst", "recv_": "src", "recv_any_source_": None}
# collective with a root -> the argument with the root's rank
_ROOTED = dict.fromkeys(("broadcast_", "reduce_", "gather_", "scatter_"), "root_rank")
_MAX_PENDING = 64
# (on a CPU, sparse) -> the dispatch key whose kernel carries out the call
_DEVICE_KEYS = {
    (True, False): torch._C.DispatchKey.CPU,
    (True, True): torch._C.DispatchKey.SparseCPU,
    (False, False): torch._C.DispatchKey.CUDA,
    (False, True): torch._C.DispatchKey.SparseCUDA,
}


def watch_collectives(recorder: Recorder, pending: PendingMessages | None = None) -> torch.library.Library:
    """Start recording; it ends when the returned library is destroyed.

    `pending` gets the messages whose Work does not report its end.
    """
    library = torch.library.Library("c10d", "IMPL")
    groups = Groups(recorder)
    for operation in _PAYLOAD:
        library.impl(operation, _watched(recorder, groups, operation, pending), "BackendSelect")
    return library


class PendingMessages:
    """Messages whose Work does not report its end (gloo's send, recv and reduce-scatter): they end with their wait."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._numbers: dict[Work, int] = {}
        self._wait = Work.wait

    def __enter__(self) -> PendingMessages:
        """Observe every wait; not needed if other code calls `waited`."""
        original, waited = self._wait, self.waited

        @functools.wraps(original)
        def wait(work: Work, /, *args: Any, **kwargs: Any) -> Any:
            result = original(work, *args, **kwargs)
            waited(work)
            return result

        setattr(Work, "wait", wait)  # noqa: B010  its stub takes no other signature
        return self

    def __exit__(self, *_: object) -> None:
        Work.wait = self._wait

    def add(self, work: Work, number: int) -> None:
        """Store a message until it has been waited for."""
        self._numbers[work] = number
        if len(self._numbers) > _MAX_PENDING:  # a stored message holds its tensors
            self._recorder.end_unknown(self._numbers.pop(next(iter(self._numbers))))

    def waited(self, work: Work) -> None:
        """Record the end of a message that has been waited for."""
        number = self._numbers.pop(work, None)
        if number is not None:
            self._recorder.completed(number)


class Groups:
    """The members of every process group, recorded when its first message is issued."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[str, list[int]] = {}

    def members(self, name: str) -> list[int]:
        """The global ranks of a group, in group order."""
        if name not in self._known:
            group = dist.distributed_c10d._resolve_process_group(name)  # pyright: ignore[reportArgumentType]  a str
            found = dist.get_process_group_ranks(group)
            self._known[name] = found
            self._recorder.group(name, found)
        return self._known[name]


def _watched(recorder: Recorder, groups: Groups, operation: str, pending: PendingMessages | None) -> Callable[..., Any]:
    overload = getattr(torch.ops.c10d, operation).default
    names = [argument.name for argument in overload._schema.arguments]
    group_at, payload_at = names.index("process_group"), _PAYLOAD[operation]
    symmetric = operation not in _POINT_TO_POINT
    peer_name = (_POINT_TO_POINT | _ROOTED).get(operation)
    peer_at = None if peer_name is None else names.index(peer_name)

    def call(*arguments: Any) -> Any:
        payload_bytes, dtype = (0, None) if payload_at is None else _payload(arguments[payload_at])
        group = ProcessGroup.unbox(arguments[group_at]).group_name
        members = groups.members(group)
        peer = -1 if peer_at is None else members[arguments[peer_at]]
        tensor = _first_tensor(arguments)
        on_cpu, sparse = (True, False) if tensor is None else (not tensor.is_cuda, tensor.is_sparse)
        number = recorder.message(
            operation, payload_bytes, group, symmetric=symmetric, peer=peer, dtype=dtype, ends=on_cpu
        )
        result = overload._op_dk(_DEVICE_KEYS[on_cpu, sparse], *arguments)
        if on_cpu:
            _record_end(_work(result), recorder, number, pending)
        return result

    return call


def _work(result: Any) -> Work | None:
    """The Work of a message from the result of its operator: alone, or after tensors; None if there is none."""
    if isinstance(result, tuple):
        result = result[-1] if result else None
    return None if result is None else Work.unbox(result)


def _record_end(work: Work | None, recorder: Recorder, number: int, pending: PendingMessages | None) -> None:
    """Record the end of a message when its Work reports it; otherwise when it is waited for, if ever."""
    if work is None:  # a monitored barrier: it returns when all have arrived
        recorder.completed(number)
        return
    try:
        future = work.get_future()
    except RuntimeError:
        if pending is None:
            recorder.end_unknown(number)
        else:
            pending.add(work, number)
        return

    def completed(_: object) -> None:
        _keep_thread_state()
        recorder.completed(number)

    future.add_done_callback(completed)


_threads_with_state: set[int] = set()


def _keep_thread_state() -> None:
    """Keep the interpreter's state of this thread for its next message.

    A backend thread has no Python thread state. Without this one is created and destroyed at every callback, which
    takes a tenth of a millisecond of CPU time.
    """
    thread = threading.get_ident()
    if thread not in _threads_with_state:
        _threads_with_state.add(thread)
        ctypes.pythonapi.PyGILState_Ensure()  # never released: the state ends with the process


def _first_tensor(value: Any) -> torch.Tensor | None:
    """The first tensor in `value`: its device and layout select the kernel.

    Lists may be empty: a rank that is not the destination of a gather has no tensors to receive into.
    """
    if isinstance(value, (list, tuple)):
        return next((found for each in value if (found := _first_tensor(each)) is not None), None)
    return value if isinstance(value, torch.Tensor) else None


def _payload(value: Any) -> tuple[int, str | None]:
    """Bytes of all tensors in `value`, and the data type of the first."""
    if isinstance(value, (list, tuple)):
        if len(value) == 1:  # the usual case: a bucket of gradients
            return _payload(value[0])
        parts = [_payload(each) for each in value]
        return sum(num_bytes for num_bytes, _ in parts), parts[0][1] if parts else None
    if value.is_sparse:
        value = value._values()  # sent together with its indices, which are not counted
    return value.nbytes, _type_name(value.dtype)


@functools.cache
def _type_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
