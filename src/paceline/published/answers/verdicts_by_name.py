"""Open questions by name, and the verdict that a study's results give to each.

A question is answered by the studies that it names. In the report of another study it says which one does; where no
study does yet, what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paceline.published.answers import (
    accuracy_answers,
    curve_answers,
    effect_answers,
    resource_answers,
    speed_answers,
    transfer_answers,
)
from paceline.published.answers.evidence import Evidence, Verdict
from paceline.published.records import Answer, Question

VERDICTS: dict[str, Callable[[Evidence], Verdict]] = {
    "accuracy-falls-with-ranks": accuracy_answers.falls_with_ranks,
    "accuracy-falls-with-batch": accuracy_answers.falls_with_batch,
    "averaging-loses-precision": accuracy_answers.averaging,
    "overfitting": curve_answers.overfitting,
    "epochs-to-stable-vs-ranks": curve_answers.epochs_to_stable,
    "which-size-first": curve_answers.which_size_first,
    "transfer-at-chance": transfer_answers.transfer_at_chance,
    "fine-tune-worse": transfer_answers.fine_tune_worse,
    "too-complex-models": transfer_answers.too_complex,
    "two-nodes-slower": speed_answers.two_slower,
    "same-time-any-nodes": speed_answers.same_time,
    "superlinear": speed_answers.superlinear,
    "nodes-or-processes": speed_answers.nodes_or_processes,
    "partial-reads": speed_answers.partial_reads,
    "gpu": speed_answers.gpu,
    "v100-equals-t4": speed_answers.v100_equals_t4,
    "allreduce-instead": effect_answers.allreduce_instead,
    "more-cores-slower": effect_answers.more_cores_slower,
    "how-much-sooner": effect_answers.how_much_sooner,
    "what-made-the-cloud-faster": effect_answers.cloud_faster,
    "checkpoint-cost": effect_answers.checkpoint_cost,
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
        return Answer(question=question, answered=False, sentences=(question.missing,))
    if here not in question.studies:
        command = f"paceline study {question.studies[0]}"
        return Answer(
            question=question,
            answered=False,
            sentences=(f"The study {question.studies[0]} answers it.", question.how),
            command=command,
        )
    if not evidence.points:
        return Answer(question=question, answered=False, sentences=("No run is finished.", question.how))
    found = VERDICTS[question.name](evidence)
    return Answer(
        question=question,
        answered=found.answered,
        sentences=found.sentences,
        figure=found.figure,
        lead=found.opening if found.answered or found.figure else (),
    )
