from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from paceline.probe.hooks.observer import Observer
from paceline.probe.hooks.step_hooks import Steps, first_tensor
from paceline.probe.recorder import Recorder
from paceline.records.rank_trace import SPAN_KINDS
from paceline.storage.pulse import PulseWriter
from paceline.storage.span_stream import SpanWriter, read_spans


class Optimizer:
    pass


class Rank:
    """A rank without torch's hooks: every call of a clock is a nanosecond."""

    def __init__(self, folder) -> None:
        self.now = 0
        self.path = folder / "spans"
        self.recorder = Recorder(SpanWriter(self.path), PulseWriter(folder / "pulse"), clock_ns=self.tick)
        self.observer = Observer(self.recorder)
        self.steps = Steps(self.observer, self.recorder.clock_ns())

    def tick(self) -> int:
        self.now += 1
        return self.now

    def update(self, *optimizers: Optimizer) -> None:
        for optimizer in optimizers:
            self.steps.about_to_update(optimizer)
            self.steps.updated(optimizer)

    def passes(self, model: int, size: int) -> None:
        self.steps.passes(model, (torch.zeros(size, 2),), {})

    def spans(self, kind: str) -> list[tuple[int, int, int]]:
        self.steps.close()
        self.recorder.flush()
        trace = read_spans(self.path, 0)
        rows = trace.kind == SPAN_KINDS.index(kind)
        return list(
            zip(trace.start_ns[rows].tolist(), trace.end_ns[rows].tolist(), trace.step[rows].tolist(), strict=True)
        )


@pytest.fixture
def rank(tmp_path):
    made = Rank(tmp_path)
    yield made
    made.recorder.close()


def test_one_optimizer_ends_a_step_each_time(rank):
    only = Optimizer()
    rank.steps.made(only)
    for count in range(1, 4):
        rank.update(only)
        assert rank.steps.taken == count
    spans = rank.spans("step")
    assert [step for *_, step in spans] == [0, 1, 2]
    assert all(before[1] == after[0] for before, after in pairwise(spans))


def test_optimizers_that_take_turns_make_one_step(rank):
    first, second = Optimizer(), Optimizer()
    rank.steps.made(first), rank.steps.made(second)
    for count in range(1, 4):
        rank.update(first)
        assert rank.steps.taken == count - 1
        rank.update(second)
        assert rank.steps.taken == count


def test_an_optimizer_that_never_steps_does_not_hold_up_the_others(rank):
    first, idle = Optimizer(), Optimizer()
    rank.steps.made(first), rank.steps.made(idle)
    rank.update(first)
    assert rank.steps.taken == 0, "it might have been the other's turn"
    rank.update(first)
    assert rank.steps.taken == 2
    rank.update(first)
    assert rank.steps.taken == 3


def test_five_critic_steps_for_each_of_the_generator(rank):
    critic, generator = Optimizer(), Optimizer()
    rank.steps.made(critic), rank.steps.made(generator)
    for _ in range(3):
        rank.update(*[critic] * 5, generator)
    rank.steps.close()
    assert rank.steps.taken == 15


def test_a_second_phase_with_fewer_optimizers(rank):
    first, second = Optimizer(), Optimizer()
    rank.steps.made(first), rank.steps.made(second)
    rank.update(first, second, first, second)
    rank.update(*[first] * 4)
    assert rank.steps.taken in (5, 6), "the last one shows when the next begins"
    rank.update(first)
    assert rank.steps.taken == 7


def test_a_single_step_that_waited_for_others_counts_in_the_end(rank):
    first, idle = Optimizer(), Optimizer()
    rank.steps.made(first), rank.steps.made(idle)
    rank.update(first)
    assert len(rank.spans("step")) == 1


def test_the_first_step_begins_with_the_last_batch_asked_for_before_it(rank):
    only = Optimizer()
    rank.steps.asked_for_a_batch()
    rank.tick()
    rank.steps.asked_for_a_batch()
    asked = rank.now
    rank.passes(1, 4)
    rank.update(only)
    rank.steps.asked_for_a_batch()
    rank.update(only)
    ((began, until, step),) = rank.spans("startup")
    assert (began, until, step) == (1, asked, -1)
    trace = read_spans(rank.path, 0)
    assert trace.start_ns[trace.kind == SPAN_KINDS.index("step")].min() == asked


def test_samples_are_summed_over_calls_and_counted_once_over_models(rank):
    only = Optimizer()
    rank.passes(1, 4)
    rank.passes(1, 3)
    rank.update(only)
    rank.passes(1, 10)
    rank.passes(2, 5)
    rank.passes(1, 10)
    rank.update(only)
    assert (rank.steps.samples, rank.steps.timed_samples) == (12, 5)


def test_a_step_that_does_not_tell_its_samples_makes_the_sum_unknown(rank):
    only = Optimizer()
    rank.steps.passes(1, ("no tensor",), {})
    rank.update(only)
    assert (rank.steps.samples, rank.steps.timed_samples) == (None, None)
    rank.passes(1, 4)
    rank.update(only)
    assert (rank.steps.samples, rank.steps.timed_samples) == (None, 4)


def test_a_model_that_its_optimizer_calls_again_and_again_is_not_counted(rank):
    """LBFGS calls its closure many times with the same samples."""
    only = Optimizer()
    rank.update(only)
    rank.steps.about_to_update(only)
    with rank.observer.span("optimizer"):
        rank.passes(1, 4)
        rank.passes(1, 4)
    rank.steps.updated(only)
    assert rank.steps.timed_samples is None


def test_first_tensor_of_anything():
    wanted = torch.zeros(3)
    assert first_tensor(((), {"mask": None, "ids": wanted})) is wanted
    assert first_tensor(([["text"], {"x": (wanted, torch.ones(1))}],)) is wanted
    assert first_tensor(("text", 3)) is None
