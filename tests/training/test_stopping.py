from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from kryograph.training.loop import Epoch
from kryograph.training.stopping import RULES, StopRule, Watch, exactly

LOW = 0.5  # a training accuracy below every peak


def follow(rule: StopRule, epochs: list[tuple[float, float]]) -> Watch:
    """The watch after (validation accuracy, training accuracy) of each epoch, or at its end."""
    watch = Watch(rule)
    for number, (score, training_accuracy) in enumerate(epochs, start=1):
        if watch.over:
            break
        watch.update(Epoch(number, 0.1, training_accuracy, score))
    return watch


def test_the_defaults_are_the_papers() -> None:
    assert StopRule() == StopRule(max_epochs=3000, patience=100, after_peak=200, peak=0.99)


def test_a_run_ends_after_max_epochs() -> None:
    watch = follow(StopRule(max_epochs=4), [(t / 10, LOW) for t in range(10)])
    assert (watch.epochs, watch.best_epoch, watch.over) == (4, 4, True)


def test_patience_counts_epochs_below_the_best() -> None:
    scores = [0.3, 0.6, 0.5, 0.4, 0.5, 0.9]
    watch = follow(StopRule(patience=3), [(score, LOW) for score in scores])
    assert (watch.epochs, watch.best_epoch, watch.best) == (5, 2, 0.6)


def test_a_tie_starts_the_count_again_and_is_kept() -> None:
    scores = [0.6, 0.5, 0.5, 0.6, 0.5, 0.5, 0.6, 0.5, 0.5, 0.5, 0.9]
    watch = follow(StopRule(patience=3), [(score, LOW) for score in scores])
    assert (watch.epochs, watch.best_epoch, watch.best) == (10, 7, 0.6)


def test_a_constant_score_never_runs_out_of_patience() -> None:
    watch = follow(StopRule(max_epochs=50, patience=1), [(0.2, LOW)] * 100)
    assert (watch.epochs, watch.best_epoch) == (50, 50)


def test_only_the_best_so_far_and_its_ties_are_reported() -> None:
    watch = Watch(StopRule())
    scores = [0.0, 0.4, 0.3, 0.4, 0.5, 0.4]
    epochs = [Epoch(number, 0.1, LOW, score) for number, score in enumerate(scores, start=1)]
    assert [watch.update(epoch) for epoch in epochs] == [True, True, False, True, True, False]
    assert watch.history == epochs


def test_the_cap_counts_from_the_first_epoch_at_the_peak() -> None:
    rule = StopRule(after_peak=3, peak=0.9)
    accuracies = [0.5, 0.9, 0.8, 1.0, 1.0, 1.0, 1.0]
    watch = follow(rule, [(t / 10, a) for t, a in enumerate(accuracies)])
    assert watch.epochs == 2 + 3  # not from epoch 4, which is at the peak again
    assert watch.best_epoch == 5


def test_the_peak_itself_counts_and_just_below_does_not() -> None:
    rule = StopRule(max_epochs=9, after_peak=1, peak=0.99)
    assert follow(rule, [(0.1, 0.99)] * 20).epochs == 2
    assert follow(rule, [(0.1, 0.9899)] * 20).epochs == 9


def test_the_cap_never_extends_a_run() -> None:
    late = follow(StopRule(max_epochs=5, after_peak=200), [(0.1, 1.0)] * 20)
    assert (late.epochs, late.last_epoch) == (5, 5)
    impatient = follow(StopRule(patience=2, after_peak=200), [(1.0, 1.0)] + [(0.1, 1.0)] * 20)
    assert impatient.epochs == 3


def test_nothing_is_carried_from_one_run_to_the_next() -> None:
    rule = StopRule(max_epochs=40, patience=4, after_peak=6)
    epochs = [(0.1 + 0.01 * (t % 5), 0.9 + 0.02 * t) for t in range(40)]
    first = follow(rule, epochs)
    follow(rule, [(1.0, 1.0)] * 40)  # a run with a higher score, and at its peak at once
    again = follow(rule, epochs)
    assert vars(again) == vars(first)
    assert (first.epochs, first.best_epoch) == (9, 5)


def by_hand(rule: StopRule, epochs: list[tuple[float, float]]) -> tuple[int, int]:
    """The last epoch and the kept one, from the whole sequence, word by word as in the rule."""
    for t in range(1, len(epochs) + 1):
        scores = [score for score, _ in epochs[:t]]
        best = max(scores)
        kept = max(e for e, score in enumerate(scores, start=1) if score == best)
        peaks = [e for e, (_, a) in enumerate(epochs[:t], start=1) if a >= rule.peak]
        if (
            t == rule.max_epochs
            or all(score < best for score in scores[-rule.patience :])
            or (peaks and t == peaks[0] + rule.after_peak)
        ):
            return t, kept
    return len(epochs), kept


@given(
    rule=st.builds(
        StopRule,
        max_epochs=st.integers(1, 30),
        patience=st.integers(1, 6),
        after_peak=st.integers(1, 12),
    ),
    epochs=st.lists(
        st.tuples(st.sampled_from([0.1, 0.2, 0.3]), st.sampled_from([0.5, 0.99, 1.0])),
        min_size=1,
        max_size=40,
    ),
)
def test_the_watch_agrees_with_the_rule_word_by_word(
    rule: StopRule, epochs: list[tuple[float, float]]
) -> None:
    watch = follow(rule, epochs)
    assert (watch.epochs, watch.best_epoch) == by_hand(rule, epochs)


def follow_steps(rule: StopRule, accuracies: list[float]) -> Watch:
    """The watch after epochs with these accuracies of the training step, with dropout."""
    watch = Watch(rule)
    for number, accuracy in enumerate(accuracies, start=1):
        if not watch.over:
            watch.update(Epoch(number, 0.1, 1.0, 1.0, step_accuracy=accuracy))
    return watch


def test_a_strict_rule_keeps_the_first_of_equals() -> None:
    watch = follow_steps(RULES["li"], [0.5, 1.0, 1.0, 0.9, 1.0])
    assert (watch.epochs, watch.kept, watch.over) == (5, 2, False)


def test_the_rule_of_li_has_200_epochs_whatever_happens() -> None:
    watch = follow_steps(RULES["li"], [1.0] + [0.5] * 300)
    assert (watch.epochs, watch.kept) == (200, 1)


def test_the_rule_of_june_keeps_the_last_epoch_without_validation_labels() -> None:
    watch = Watch(RULES["june"])
    for number, accuracy in enumerate([0.5, 0.9, 0.8], start=1):
        assert watch.update(Epoch(number, 0.1, 1.0, None, step_accuracy=accuracy))
    assert (watch.best_epoch, watch.kept, watch.last_epoch) == (2, 3, 3000)


def test_a_number_of_epochs_can_be_asked_for_exactly() -> None:
    watch = follow(exactly(7), [(0.0, 1.0)] * 20)
    assert (watch.epochs, watch.kept) == (7, 7)


def test_skipped_epochs_count_and_the_last_one_is_kept() -> None:
    watch = Watch(exactly(3))
    for _ in range(2):
        watch.skip()
    assert (watch.epochs, watch.over, watch.history) == (2, False, [])
    assert watch.update(Epoch(3, 0.1, 0.2, None))
    assert (watch.epochs, watch.kept, watch.over) == (3, 3, True)


def test_every_rule_has_a_summary_that_does_not_count_when_rules_are_compared() -> None:
    assert all(rule.summary for rule in RULES.values())
    assert RULES["paper"] == StopRule()


def test_stop_rules_are_imported_without_torch() -> None:
    code = (
        "import sys, kryograph.training.stopping as s; print(len(s.RULES), 'torch' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout == "5 False\n"


def test_the_papers_text_has_no_cap_after_the_peak() -> None:
    assert follow(RULES["text"], [(1.0, 1.0)] * 4000).epochs == 3000
    assert follow(RULES["text"], [(1.0, 1.0)] + [(0.5, 1.0)] * 4000).epochs == 101
