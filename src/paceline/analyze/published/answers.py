"""Open questions by name, and the verdict that a study's results give to each.

A question is answered by the studies that it names. In the report of another study it says which one does; where no
study does yet, what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paceline.analyze.published import accuracy_answers, resource_answers, speed_answers
from paceline.analyze.published.evidence import Evidence, Verdict
from paceline.records.published import Answer, Question

VERDICTS: dict[str, Callable[[Evidence], Verdict]] = {
    "accuracy-falls-with-ranks": accuracy_answers.falls_with_ranks,
    "accuracy-falls-with-batch": accuracy_answers.falls_with_batch,
    "fine-tune-worse": accuracy_answers.fine_tune_worse,
    "overfitting": accuracy_answers.overfitting,
    "too-complex-models": accuracy_answers.too_complex,
    "epochs-to-stable-vs-ranks": accuracy_answers.epochs_to_stable,
    "which-size-first": accuracy_answers.which_size_first,
    "two-nodes-slower": speed_answers.two_slower,
    "same-time-any-nodes": speed_answers.same_time,
    "superlinear": speed_answers.superlinear,
    "nodes-or-processes": speed_answers.nodes_or_processes,
    "allreduce-instead": speed_answers.allreduce_instead,
    "partial-reads": speed_answers.partial_reads,
    "gpu": speed_answers.gpu,
    "v100-equals-t4": speed_answers.v100_equals_t4,
    "more-cores-slower": speed_answers.more_cores_slower,
    "what-made-the-cloud-faster": speed_answers.cloud_faster,
    "checkpoint-cost": speed_answers.checkpoint_cost,
    "got-what-was-asked": resource_answers.got_what_was_asked,
    "real-user-sys": resource_answers.real_user_sys,
    "message-log": resource_answers.message_log,
    "hyper-parameters-vs-resources": resource_answers.hyper_parameters,
    "table-contradicts-itself": resource_answers.table_contradicts,
}


def answers(questions: Sequence[Question], evidence: Evidence) -> tuple[Answer, ...]:
    """One answer to each question, in their order."""
    return tuple(_answer(question, evidence) for question in questions)


def _answer(question: Question, evidence: Evidence) -> Answer:
    here = evidence.results.study.name
    if not question.studies:
        return Answer(question=question, answered=False, verdict=question.missing)
    if here not in question.studies:
        command = f"paceline study {question.studies[0]}"
        return Answer(
            question=question,
            answered=False,
            verdict=f"The study {question.studies[0]} answers it. {question.how}",
            command=command,
        )
    if not evidence.points:
        return Answer(question=question, answered=False, verdict=f"No run is finished. {question.how}")
    found = VERDICTS[question.name](evidence)
    return Answer(question=question, answered=found.answered, verdict=found.text, figure=found.figure)
