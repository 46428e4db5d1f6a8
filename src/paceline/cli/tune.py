"""`paceline tune lr`: a learning rate for a study, from a range test."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from paceline.cli.console import Console
from paceline.cli.options import DEFAULT_OPTIONS, Count, Json, RunOptions, Source
from paceline.cli.progress import StudyProgress
from paceline.studies.execute.events import Event, RunFinished, RunStarted
from paceline.units import counted, duration_text

if TYPE_CHECKING:
    from paceline.app.lr_tuning import TunedRate

verb = App(
    name="tune",
    usage="paceline tune lr [STUDY] [OPTIONS]",
    group_parameters="Options",
    help="""Find a learning rate for a study before it is run.

    The best rate depends on model, data, optimizer and global batch size. A range test takes seconds.

    For example:

        paceline tune lr digits
        paceline tune lr my-study.toml --ranks 2 --repeats 3
    """,
)


@verb.command(sort_key=1, usage="paceline tune lr [STUDY] [OPTIONS]")
def lr(
    study: Source = "mnist-scaling",
    /,
    *,
    ranks: Annotated[
        Count | None,
        Parameter(help="Number of ranks; default: the largest of the study that this machine has cores for."),
    ] = None,
    first: Annotated[float, Parameter(name="--from", metavar="RATE", help="Learning rate of the first step.")] = 1e-5,
    last: Annotated[float, Parameter(name="--to", metavar="RATE", help="Learning rate of the last step.")] = 1.0,
    steps: Annotated[Count, Parameter(help="Optimizer steps of one test.")] = 100,
    repeats: Annotated[Count, Parameter(help="Number of tests, each with its own seed; the median is used.")] = 1,
    options: RunOptions = DEFAULT_OPTIONS,
    as_json: Json = False,
) -> int:
    """Find a learning rate with a range test: a short training in which the rate rises at every step.

    All ranks train with the global batch size and strategy of the study until the loss diverges. The result is valid
    for this batch size. The recommended rate is the one at which the smoothed loss fell fastest, but at most a tenth
    of the rate at which it diverged. If the study varies more than the ranks, the first value of each factor is used.

    For example:

        paceline tune lr digits
        paceline tune lr my-study.toml --ranks 4 --from 1e-4 --to 10 --repeats 3
    """
    from paceline import app

    console = Console.standard()
    with RangeProgress(console) as progress:
        try:
            tuned = app.tune(
                study,
                ranks=ranks,
                first=first,
                last=last,
                steps=steps,
                repeats=repeats,
                **asdict(options),
                events=progress,
            )
        except KeyboardInterrupt:
            return progress.interrupted("tune lr")
    _show(tuned, console, as_json=as_json)
    return 1 if tuned.failures or tuned.lr is None else 0


class RangeProgress(StudyProgress):
    """Prints the progress of range tests, without warnings about their curves, which are expected to diverge."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunFinished):
            self.finished += 1
            self._print(event, "OK", f"{counted(event.result.steps, 'step')}, {duration_text(event.result.wall_s)}")
        else:
            super().__call__(event)

    def _watch_curves(self, event: RunStarted) -> None:
        """Do nothing: a range test is expected to diverge."""


def _show(tuned: TunedRate, console: Console, *, as_json: bool) -> None:
    if as_json:
        console.json(tuned.to_dict())
        return
    console.result(tuned.text(width=console.width))
    for note in tuned.advice.notes:
        console.status("WARN", note)
    console.result(f"\nCurves  {tuned.page or 'not written'}")
    if tuned.command:
        console.result(f"Next    {tuned.command}")
