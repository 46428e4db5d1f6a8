"""What was measured on, with which settings, how, and what every figure means: pairs of label and text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paceline import catalog
from paceline.metrics import metric, metrics_by_heading
from paceline.records.allocation import Link, ProcessFacts
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.results import Interval, StudyResults
from paceline.records.run import Machine
from paceline.records.study import Study
from paceline.records.study_size import size_text
from paceline.reporting.wording.choice import is_script, is_weak, measures_scaling, shared_epoch
from paceline.reporting.wording.choice_words import choice_lines
from paceline.reporting.wording.phrases import parameters_text, shared_epoch_note
from paceline.reporting.wording.settings_list import study_settings
from paceline.reporting.wording.verdict_words import finished_runs
from paceline.units import bytes_text, counted, duration_text, percent_text


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and its text."""

    label: str
    text: str


def term_facts(*names: str) -> tuple[Fact, ...]:
    """Names of metrics with their definitions."""
    return tuple(Fact(name, metric(name).definition) for name in names)


def headline_facts(results: StudyResults) -> tuple[str, ...]:
    """What a reader wants to know at a glance: how much was run, of what, on what."""
    study, machine = results.study, results.machine
    runs = f"{finished_runs(results)} of {results.expected_runs} runs"
    facts = [runs]
    if study.script is not None:
        facts += [study.script.path, *([f"{study.run.scaling} scaling"] if study.run.scaling else [])]
    else:
        scaling = "strong scaling" if not is_weak(results) else "weak scaling"
        scaling += ", strong by the epoch" if shared_epoch(results) else ""
        model, data = _varied(study, "model.name", study.model.name), _varied(study, "data.dataset", study.data.dataset)
        facts += [f"{model} on {data}", scaling if measures_scaling(results) else "one factor at a time"]
    if sized := size_text(study):
        facts.append(sized)
    if machine is not None:
        cores = counted(machine.cores, "core")
        facts.append(f"{machine.cpu}, {cores}" if machine.cpu else cores)
    return tuple(facts)


def _varied(study: Study, path: str, value: str) -> str:
    """A name, or all of them where a study varies it."""
    return ", ".join(str(each) for each in study.vary.get(path, (value,)))


def machine_facts(results: StudyResults) -> tuple[Fact, ...]:
    """Hosts, cores, devices and versions of the ranks."""
    machine = results.machine
    if machine is None:
        return ()
    facts = [
        Fact("Hosts", ", ".join(machine.hosts)),
        *_host_facts(machine),
        Fact("Processor", machine.cpu),
        Fact("Cores", f"{machine.cores} physical, {machine.logical_cores} logical"),
        Fact("Memory", bytes_text(machine.memory_bytes)),
        Fact("GPUs", ", ".join(machine.gpus) or "none"),
        Fact("System", machine.platform),
        Fact("Devices of the ranks", _unique(machine.devices)),
        Fact("Threads per rank", _unique(map(str, machine.threads))),
        Fact("Cores of the ranks", "; ".join(_cores_text(cores) for cores in machine.affinity)),
        Fact("Communication", communication_text(results)),
        Fact("Links, measured before the first step", "; ".join(map(_link_text, machine.links))),
        Fact("Versions", versions_text(machine)),
    ]
    return tuple(fact for fact in facts if fact.text)


def communication_text(results: StudyResults) -> str:
    """What carries messages: gradients go by MPI where the strategy is one of MPI's, all else by torch's backend."""
    backend = results.machine.backend if results.machine else ""
    strategies = results.study.vary.get("run.strategy", (results.study.run.strategy,))
    by_mpi = [str(name) for name in strategies if catalog.strategy(str(name)).needs_mpi]
    if not by_mpi or is_script(results) or backend in ("", "none"):
        return backend
    which = f" ({', '.join(by_mpi)})" if len(by_mpi) < len(strategies) else ""
    return f"gradients by MPI{which}, all else by {backend}"


def _host_facts(machine: Machine) -> list[Fact]:
    """A line for every host where there are several: its processes, their cores, its address."""
    by_host: dict[str, list[ProcessFacts]] = {}
    for process in machine.ranks:
        by_host.setdefault(process.place, []).append(process)
    if len(by_host) < 2:
        return []
    return [
        Fact(
            f"Host {name}",
            f"{counted(len(own), 'rank')} ({', '.join(str(process.rank) for process in own)}) on "
            f"{counted(own[0].cores, 'core')}, {own[0].interface} {own[0].addresses[0] if own[0].addresses else ''}",
        )
        for name, own in by_host.items()
    ]


def _link_text(link: Link) -> str:
    """'h1 to h2: 85.1 µs, 117 MB/s'."""
    where = f"inside {link.source_host}" if link.kind == "inside" else f"{link.source_host} to {link.target_host}"
    return f"{where}: {duration_text(link.latency_s)}, {bytes_text(link.bandwidth)}/s"


def versions_text(machine: Machine | None) -> str:
    """Names and versions of what ran."""
    return ", ".join(f"{name} {version}" for name, version in sorted(machine.versions.items())) if machine else ""


def _network_facts(results: StudyResults) -> list[Fact]:
    """What a pretrained network was made of and fed with, as its runs noted it."""
    noted = {label: text for point in results.points for label, text in point.network.items()}
    return [Fact(f"{label} of the pretrained network", text) for label, text in noted.items() if label != "network"]


def settings_facts(results: StudyResults) -> tuple[Fact, ...]:
    """Every setting that has a value, under the name that `--set` knows, and what follows from them."""
    facts = [
        Fact(name, _value_text(value)) for name, value in study_settings(results.study).items() if value is not None
    ]
    if is_script(results):
        return tuple(facts)
    chosen = choice_lines((result.label, result.point.chosen) for result in results.points)
    return (
        *facts,
        *(Fact("chosen by the recipe", line) for line in chosen),
        Fact("parameters of the model", parameters_text(results)),
        *_network_facts(results),
    )


def protocol_facts(results: StudyResults) -> tuple[Fact, ...]:
    """How the figures were measured."""
    study = results.study
    repeats = study.run.repeats
    seeds = (
        f"seed {study.train.seed}" if repeats == 1 else f"seeds {study.train.seed} to {study.train.seed + repeats - 1}"
    )
    warm_up = "The first epoch of a run is left out of its times, and so is an interrupted one, where there are others."
    some = f"{counted(study.data.test_samples, 'sample')} of " if study.data.test_samples else ""
    accuracy = f"On {some}the test set, after the last epoch; mean and standard deviation over repeats."
    clock = "The host's monotonic clock; an epoch takes as long as its slowest rank."
    if is_script(results):
        seeds, accuracy = "the seeds that the script chooses itself", ""
        warm_up = "The first step of a run is left out of its times. A step is an update by the script's optimizers."
        clock = "The host's monotonic clock; the timed steps take as long as on the slowest rank."
    facts = [
        Fact(
            "Repeats",
            f"{repeats} per point, each in processes of its own, with {seeds}; "
            f"{finished_runs(results)} of {results.expected_runs} runs are finished.",
        ),
        Fact("Size", f"{sized[0].upper()}{sized[1:]}." if (sized := size_text(study)) else ""),
        Fact("Order", "Runs are interleaved over the points, so that a noisy minute does not fall on one of them."),
        Fact("Warm-up", warm_up),
        Fact("Intervals", _interval_words(results)),
        Fact("Accuracy", accuracy),
        Fact("Clock", clock),
        Fact("Versions", versions_text(results.machine)),
        Fact("Commit", results.commit or "not run from a checkout"),
    ]
    return tuple(fact for fact in facts if fact.text)


def definitions(results: StudyResults) -> tuple[Fact, ...]:
    """What every figure of the report means, and what stays the same over ranks in this study."""
    script = is_script(results)
    batch = "The batch per rank" if is_weak(results) else "The global batch"
    scaling = f"{batch} is the same at every point. {shared_epoch_note(results)}".rstrip()
    return (
        *term_facts("run time" if script else "epoch time", "samples/s", "baseline", "speed-up", "ideal", "efficiency"),
        *(() if script and not results.study.run.scaling else (Fact("scaling", scaling),)),
        *term_facts("median run", "lost part", "where the time went", *LEDGER_KINDS),
    )


def _interval_words(results: StudyResults) -> str:
    intervals: list[Interval] = [
        interval
        for point in results.points
        for interval in (point.epoch_s, point.samples_per_s, point.speedup)
        if interval is not None and interval.n > 1
    ]
    if not intervals:
        return ""
    coverages = [interval.coverage for interval in intervals if interval.coverage is not None]
    parts = []
    if coverages:
        low, high = percent_text(min(coverages)), percent_text(max(coverages))
        span = low if low == high else f"{low} to {high}"
        parts.append(
            f"An interval contains the median with a confidence of {span}; it comes from the order of the repeats."
        )
    if len(coverages) < len(intervals):
        parts.append("With fewer than five repeats the smallest and largest value are shown, and called a range.")
    return " ".join(parts)


def _unique(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def _cores_text(cores: tuple[int, ...]) -> str:
    return ", ".join(map(str, cores)) or "any"


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return ", ".join(_value_text(item) for item in value)
    return str(value)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A term, what it means, and its formula where it has one."""

    term: str
    text: str
    formula: str = ""


def meanings(headings: Iterable[str], definitions: Iterable[Fact] = ()) -> tuple[Meaning, ...]:
    """What is known of these headings, in their order and each once; names of factors and points mean themselves."""
    own, known = {fact.label: fact.text for fact in definitions}, metrics_by_heading()
    found: dict[str, Meaning] = {}
    for heading in headings:
        entry = known.get(heading)
        term = entry.name if entry and heading not in own else heading
        text = own.get(term) or (entry.definition if entry else "")
        if text:
            found.setdefault(term, Meaning(term, text, entry.formula if entry else ""))
    return tuple(found.values())
