from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
import weakref

import pytest
import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_pre_hooks

from paceline.probe.hooks.observer import Observer
from paceline.probe.hooks.patches import Patches
from paceline.probe.recorder import Recorder
from paceline.probe.watcher import Watcher
from paceline.records.rank_trace import SPAN_KINDS
from paceline.storage.pulse import PulseWriter
from paceline.storage.span_stream import SpanWriter, read_spans


@pytest.fixture
def recorder(tmp_path):
    made = Recorder(SpanWriter(tmp_path / "spans"), PulseWriter(tmp_path / "pulse"))
    yield made
    made.close()


@pytest.fixture
def watch(recorder):
    made = Watcher(recorder)
    yield made
    if not made.silent:
        made.end()


def counts(recorder, tmp_path, kind):
    recorder.flush()
    return int((read_spans(tmp_path / "spans", 0).kind == SPAN_KINDS.index(kind)).sum())


def step(model, optimizer, size=4):
    optimizer.zero_grad()
    model(torch.randn(size, 3)).sum().backward()
    optimizer.step()


def net():
    return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))


def test_only_the_outermost_call_of_a_model_is_a_forward_pass(recorder, watch, tmp_path):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step(model, optimizer)
    assert counts(recorder, tmp_path, "forward") == 1
    model.eval()
    model(torch.randn(2, 3))
    with torch.no_grad():
        model.train()(torch.randn(2, 3))
    assert (counts(recorder, tmp_path, "forward"), counts(recorder, tmp_path, "evaluate")) == (1, 2)
    assert watch.end().samples == 4


def test_a_module_that_is_never_called_itself_is_looked_into(recorder, watch, tmp_path):
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict({"inner": net()})

    holder = Holder()
    optimizer = torch.optim.SGD(holder.parameters(), lr=0.1)
    for _ in range(3):
        step(holder.parts["inner"], optimizer)
    assert counts(recorder, tmp_path, "forward") == 2, "all but the first, after which it was found"
    sight = watch.end()
    assert (sight.samples, sight.timed_samples) == (None, 8)


def test_copies_and_pickles_of_a_model_are_models_of_their_own(recorder, watch, tmp_path):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step(model, optimizer)
    copies = [copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))]
    copies.append(model._replicate_for_data_parallel())
    step(model, optimizer)
    assert all("_compiled_call_impl" not in vars(each) for each in copies)
    inputs = torch.randn(2, 3)
    before = copies[0](inputs)
    step(model, optimizer)
    assert torch.equal(copies[0](inputs), before)
    assert counts(recorder, tmp_path, "forward") == 3


def test_a_watched_model_is_freed_when_it_is_dropped(watch):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step(model, optimizer)
    gone = weakref.ref(model)
    gc.disable()
    try:
        del model
        assert gone() is None
    finally:
        gc.enable()
    del optimizer


def test_everything_is_as_before_when_the_watch_ends(recorder):
    looked_at = [
        (torch, "save"),
        (torch, "compile"),
        (torch.autograd, "backward"),
        (torch.optim.Optimizer, "__init__"),
        (torch.utils.data.DataLoader, "__iter__"),
        (torch.nn.parallel.DistributedDataParallel, "__init__"),
        (torch.distributed, "init_process_group"),
        (torch._C._distributed_c10d.Work, "wait"),
    ]
    before = [vars(owner)[name] for owner, name in looked_at]
    watch = Watcher(recorder)
    assert all(vars(owner)[name] is not old for (owner, name), old in zip(looked_at, before, strict=True))
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step(model, optimizer)
    watch.end()
    assert [vars(owner)[name] for owner, name in looked_at] == before
    assert "_compiled_call_impl" not in vars(model)
    assert not _global_optimizer_pre_hooks


def test_an_error_in_a_step_that_the_script_catches(recorder, watch, tmp_path):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def closure():
        raise MemoryError

    with pytest.raises(MemoryError):
        optimizer.step(closure)
    step(model, optimizer)
    step(model, optimizer)
    assert watch.end().steps == 2
    assert counts(recorder, tmp_path, "optimizer") == 3


def test_an_optimizer_within_another_is_part_of_it(recorder, watch, tmp_path):
    class Outer(torch.optim.SGD):
        def __init__(self, params, inner):
            super().__init__(params, lr=0.1)
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step()

    model = net()
    outer = Outer(model.parameters(), torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in range(3):
        step(model, outer)
    sight = watch.end()
    assert sight.steps == 3 and "1 optimizer" in sight.found
    assert counts(recorder, tmp_path, "optimizer") == 3


def test_other_threads_are_not_seen(recorder, watch, tmp_path):
    model = net()
    step(model, torch.optim.SGD(model.parameters(), lr=0.1))
    other = threading.Thread(target=lambda: model(torch.randn(2, 3)).sum().backward())
    other.start()
    other.join()
    assert counts(recorder, tmp_path, "forward") == counts(recorder, tmp_path, "backward") == 1


def test_recomputed_activations_are_part_of_backward(recorder, watch, tmp_path):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(4, 3, requires_grad=True)
    torch.utils.checkpoint.checkpoint(model, inputs, use_reentrant=False).sum().backward()
    optimizer.step()
    assert counts(recorder, tmp_path, "forward") == 1
    assert watch.end().samples == 4


def test_a_trace_that_cannot_be_written_does_not_end_the_script(recorder, watch):
    from paceline.errors import StorageError

    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder._problem = StorageError("No space left.")
    step(model, optimizer)
    step(model, optimizer)
    sight = watch.end()
    assert "The trace ends after 1 step: No space left." in sight.notes
    recorder._problem = None


def test_a_module_is_met_when_it_is_imported(tmp_path, monkeypatch):
    (tmp_path / "met_later.py").write_text("def f():\n    return 1\n")
    (tmp_path / "who_imports.py").write_text("from met_later import f\n")
    monkeypatch.syspath_prepend(tmp_path)
    patches = Patches()
    patches.when_imported("met_later", lambda module: patches.replace(module, "f", lambda original: lambda: 2))
    import who_imports

    assert who_imports.f() == 2, "before those who import from it"
    import met_later

    assert type(met_later.__loader__).__name__ == "SourceFileLoader"
    patches.undo()
    assert met_later.f() == 1
    for name in ("met_later", "who_imports"):
        del sys.modules[name]


def test_spans_of_one_kind_do_not_nest(recorder):
    observer = Observer(recorder)
    with observer.span("forward"):
        assert not observer.sees("forward") and not observer.sees("evaluate") and observer.sees("communicate")
    with observer.span("backward"):
        assert not observer.sees("forward")
    assert observer.sees("forward")
