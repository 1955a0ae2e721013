"""Whether a run can be trusted, and what to do: one verdict from the facts of the run.

``judge`` is the only place where the headline is decided: the terminal, the page and run.json say
what it says. docs/verdicts.md has a section for each verdict; ``facts`` has the thresholds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ttgcd.report.facts import (
    ABSENT_SAMPLES,
    ABSENT_SHARE,
    FEW_SAMPLES,
    LABELLED_NAMES,
    LIKELY,
    NO_STRUCTURE,
    Facts,
    Level,
    doubted_names,
    labels_say,
    names_level,
    order_level,
)
from ttgcd.wording import counted, listed

#: Where the documentation says more.
PAGES = "https://ttgcd.github.io/ttgcd/verdicts/"

#: Names that are listed in a sentence.
_LISTED = 5


class Verdict(Enum):
    """What can be said of a run; the value is the section of docs/verdicts.md."""

    FIT = "names-fit"
    GROUPS = "groups-only"
    GUESS = "number-is-a-guess"
    LOOK = "worth-a-look"
    ONE_NAME = "one-name"
    ABSENT = "names-absent"
    SOME_NAMES = "some-names-do-not-fit"
    FEW = "few-images"
    SORTED = "sorted"
    NAMES = "names-do-not-fit"
    NO_GROUPS = "no-groups"
    LABELS = "labels-contradict"
    BROKEN = "broken"


@dataclass(frozen=True)
class Judgement:
    """A verdict in words: ``sentence`` says what is, ``advice`` what to do."""

    verdict: Verdict
    level: Level
    sentence: str
    advice: str

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return {"good": "Healthy", "look": "Worth a look", "bad": "Do not trust yet"}[self.level]

    @property
    def page(self) -> str:
        """Where to read more."""
        return f"{PAGES}#{self.verdict.value}"

    def text(self) -> str:
        """For a terminal."""
        return f"verdict: {self.sentence}\n  {self.advice}\n  {self.page}"

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Judgement:
        """What ``as_json`` put into run.json."""
        verdict = Verdict(record["verdict"])
        return cls(verdict, record["level"], record["sentence"], record["advice"])

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict.value,
            "level": self.level,
            "sentence": self.sentence,
            "advice": self.advice,
            "page": self.page,
        }


def judge(facts: Facts) -> Judgement:
    """The verdict: the first that applies, causes before what they lead to."""
    for rule in _RULES:
        found = rule(facts)
        if found is not None:
            # A smaller matter must not hide what the labels say.
            return found if found.level == "bad" else _labels(facts) or found
    return _good(facts)


def _no_groups(facts: Facts) -> Judgement | None:
    structure = facts.signs.structure
    if structure is None or structure >= NO_STRUCTURE or labels_say(facts) == "good":
        return None
    neither = "neither the names nor the groups mean" if facts.names else "the groups do not mean"
    return Judgement(
        Verdict.NO_GROUPS,
        "bad",
        f"These {facts.noun[1]} fall into no groups: {neither} anything here.",
        "Look at the pictures: are they damaged or empty? If not, this model cannot tell them "
        "apart: take a larger one, or one trained on such pictures.",
    )


def _broken(facts: Facts) -> Judgement | None:
    if not facts.faults:
        return None
    return Judgement(
        Verdict.BROKEN,
        "bad",
        f"Something went wrong, do not trust the groups yet: {_small(facts.faults[0])}",
        "Read the reasons in the report under Health.",
    )


def _sorted(facts: Facts) -> Judgement | None:
    level = order_level(facts)
    if level == "good":
        return None
    late = f" ({listed(facts.late, _LISTED)} came only later)" if facts.late else ""
    return Judgement(
        Verdict.SORTED,
        level,
        f"The first {facts.noun[1]} are not like the later ones{late}, as in a sorted folder: the "
        "groups were begun on an unfair sample.",
        "Run again without `shuffle=False`, so that the order is drawn at random.",
    )


def _few(facts: Facts) -> Judgement | None:
    if facts.samples >= FEW_SAMPLES or labels_say(facts) is not None:
        return None
    what = "names and groups" if facts.names else "groups"
    return Judgement(
        Verdict.FEW,
        "look",
        f"{counted(facts.samples, *facts.noun)} are too few to judge {what} by: take them as a "
        "suggestion.",
        f"Look at every group, or add {facts.noun[1]}: a few hundred, and ten of each kind, tell "
        "more.",
    )


def _names(facts: Facts) -> Judgement | None:
    if labels_say(facts) == "good" or names_level(facts) != "bad":
        return None
    return Judgement(
        Verdict.NAMES,
        "bad",
        f"The names do not fit these {facts.noun[1]}: do not use the known classes yet; the groups "
        "may still be good.",
        "Look at the cards of some known classes. If the names are of other things, correct them; "
        "if they are right, the model does not know them in such pictures: try other words, or a "
        "larger model. Without names (leave out `known=...`) the groups are made by looks alone.",
    )


def _labels(facts: Facts) -> Judgement | None:
    if labels_say(facts) != "bad":
        return None
    if facts.right_names is not None and facts.right_names < LABELLED_NAMES[0]:
        said = f"only {facts.right_names:.0f} % of known classes carry the right name"
    else:
        said = f"only {facts.right_all:.0f} % are where they belong"
    return Judgement(
        Verdict.LABELS,
        "bad",
        f"By your labels {said}: do not use the answers yet.",
        "The model may not know these classes by their names, or not in pictures like these: try "
        "other words for them, or a larger model.",
    )


def _absent(facts: Facts) -> Judgement | None:
    there = facts.signs.known_share * facts.samples
    few = there < max(ABSENT_SAMPLES, ABSENT_SHARE * facts.samples)
    if not facts.names or facts.signs.confidence is None or not few:
        return None
    return Judgement(
        Verdict.ABSENT,
        "look",
        f"Next to none of these {facts.noun[1]} is of a class that was named: all are in new "
        "groups.",
        "If there should be some, say their names in other words; if not, name the groups.",
    )


def _one_name(facts: Facts) -> Judgement | None:
    if len(facts.names) != 1 or labels_say(facts) == "good":
        return None
    return Judgement(
        Verdict.ONE_NAME,
        "look",
        f"A single name cannot be checked against others: look at the {facts.noun[1]} in "
        f'"{facts.names[0]}" before you use them.',
        "Name a few more classes that are there, or also things that are not what you look for.",
    )


def _some_names(facts: Facts) -> Judgement | None:
    if labels_say(facts) == "good" or names_level(facts) != "look":
        return None
    doubted = doubted_names(facts)
    which = "Some names do"
    if doubted:
        does = "does" if len(doubted) == 1 else "do"
        which = f"{len(doubted)} of {counted(len(facts.names), 'name')} {does}"
    said = f"{which} not fit these {facts.noun[1]}"
    if doubted:
        said += f": {listed(doubted, _LISTED)}"
    return Judgement(
        Verdict.SOME_NAMES,
        "look",
        f"{said}. Look at these classes before you use them.",
        "Correct or leave out the names that are of other things; a class that is there may need "
        "another word.",
    )


def _guess(facts: Facts) -> Judgement | None:
    if facts.novel_given or facts.count_judged:
        return None
    between = ""
    if facts.novel_range is not None:
        between = f", between {facts.novel_range[0]:,} and {facts.novel_range[1]:,}"
    named = "new groups" if facts.names else "groups"
    return Judgement(
        Verdict.GUESS,
        "look",
        f"The number of {named}, {facts.novel:,}, is a guess{between}: some groups may be parts of "
        "one kind, or several kinds in one.",
        "Give the number if you know it (`novel=...`), or merge and split groups in the report.",
    )


def _look(facts: Facts) -> Judgement | None:
    reasons = list(facts.looks)
    if labels_say(facts) == "look":
        reasons.insert(0, "by your labels many answers are wrong")
    elif facts.signs.confidence is not None and facts.signs.confidence < LIKELY:
        reasons.insert(0, "most answers are more likely wrong than right")
    if not reasons:
        return None
    return Judgement(
        Verdict.LOOK,
        "look",
        f"The run finished, and something is worth a look: {_small(reasons[0])}",
        "Read the reasons in the report under Health.",
    )


_RULES: tuple[Callable[[Facts], Judgement | None], ...] = (
    _no_groups,
    _broken,
    _sorted,
    _few,
    _names,
    _labels,
    _absent,
    _one_name,
    _some_names,
    _guess,
    _look,
)


def _good(facts: Facts) -> Judgement:
    if not facts.names:
        return Judgement(
            Verdict.GROUPS,
            "good",
            f"No names were given: the {facts.noun[1]} are in groups by their looks, which can be "
            "named now.",
            "Give the groups names in the report; from then on they are known classes.",
        )
    new = ""
    if facts.novel == 0:
        new = "; nothing new was found"
    elif not facts.novel_given and facts.novel_range is not None and facts.novel_range[0] == 0:
        new = "; there may be nothing new among them"
    return Judgement(
        Verdict.FIT,
        "good",
        f"The names fit these {facts.noun[1]}, and the answers can be used{new}.",
        "Look through the new groups, give them names, and correct what is wrong.",
    )


def _small(text: str) -> str:
    """A sentence behind a colon; names and numbers in it stay as they are."""
    return text[:1].lower() + text[1:]
