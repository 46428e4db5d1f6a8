"""Findings from what the ranks said before the first step."""

from __future__ import annotations

from paceline.analyze.study.study_results import study_results
from paceline.records.allocation import Complaint
from paceline.records.finding import Finding
from paceline.records.run import Machine
from paceline.records.study import Study
from samples.trace_samples import traces_of


def complaint(name: str, severity: str, what: str = "It is not so.") -> Complaint:
    return Complaint(name=name, severity=severity, what=what, right=f"{name} right.", next=f"{name} next.")


def told(point, run, machines: list[Machine], **changed) -> dict[str, Finding]:
    runs = [run(point(2), number, **changed) for number in range(1, 6)]
    found = study_results(
        Study(name="by-hand"),
        "folder",
        [point(2)],
        runs,
        traces=traces_of(()),
        machine=machines[0],
        machines=machines,
        expected_runs=5,
    ).findings
    return {finding.code: finding for finding in found}


def test_what_was_as_asked_for_is_no_finding(point, run, machine) -> None:
    quiet = machine(complaints=(complaint("more-threads-than-cores", "info"),))
    assert "asked-for-against-given" not in told(point, run, [machine(), quiet])


def test_a_warning_is_told_with_its_figures_and_its_runs(point, run, machine) -> None:
    uneven = machine(complaints=(complaint("uneven-spread", "warning", "3 + 1 where 2 + 2 were asked for."),))
    finding = told(point, run, [machine(), uneven, uneven])["asked-for-against-given"]
    assert finding.severity == "warning"
    assert finding.values["complaints"] == ((uneven.complaints[0], 2),)
    assert (finding.values["found"], finding.values["runs"], finding.values["forced"]) == (2, 3, False)


def test_what_was_forced_is_an_error(point, run, machine) -> None:
    forced = machine(complaints=(complaint("no-gpu", "fatal"), complaint("uneven-spread", "warning")))
    finding = told(point, run, [forced])["asked-for-against-given"]
    assert finding.severity == "error" and finding.values["forced"]
    assert [(found.name, runs) for found, runs in finding.values["complaints"]] == [("no-gpu", 1), ("uneven-spread", 1)]


def test_emulated_hosts_are_told(point, run, machine) -> None:
    emulated = machine(complaints=(complaint("emulated-hosts", "info", "h1 and h2 are one machine."),))
    finding = told(point, run, [emulated], emulated=True)["emulated-hosts"]
    assert finding.severity == "info" and finding.values["complaint"] == emulated.complaints[0]
    assert len(finding.points) == 1
    assert "emulated-hosts" not in told(point, run, [machine()])


def test_points_on_other_numbers_of_hosts_are_no_mixed_environment(point, run, machine) -> None:
    one, two = machine(hosts=("h1",), cores=2), machine(hosts=("h1", "h2"), cores=4)
    assert "mixed-environment" not in told(point, run, [one, two])
    mixed = told(point, run, [two, machine(hosts=("h1", "h3"), cores=4)])["mixed-environment"].values["mixed"]
    assert mixed == {("host", 2): {"h1, h2": 1, "h1, h3": 1}}
