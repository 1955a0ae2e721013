"""What decides the verdict on a run: the facts, every threshold, and the questions put to them.

The thresholds were set on runs with margins on both sides (docs/verdicts.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ttgcd.report.signs import Signs

Level = Literal["good", "look", "bad"]

#: With fewer samples neither names nor groups can be told from chance.
FEW_SAMPLES = 100
#: Below this structure the samples are a cloud without groups (noise 0.03 to 0.09, pictures 0.19
#: and more, see docs/verdicts.md).
NO_STRUCTURE = 0.14
#: A name is doubted whose answers have a median confidence below the first, or below the second
#: while images stand out to it less than ``UNMEANT`` of random directions would have it. In a style
#: that the model finds hard many names lie between; of names of other things most lie below.
DOUBTED, DOUBTED_UNMEANT, UNMEANT = 0.3, 0.75, 0.6
#: Median confidence of all answers below which most are more likely wrong than right.
LIKELY = 0.5
#: The fit of the names, see ``names_fit``: none fits below the first, all do from the second on.
NONE_FIT, ALL_FIT = 0.28, 0.6
#: Names that clusters made without them bear out less than the first, which is next to not at all,
#: fit only if the answers with them are surer than the second.
UNRELATED, UNLESS_SURE = 0.1, 0.5
#: From this share of doubted names on some of them do not fit, however well the others do.
SOME_DOUBTED = 0.27
#: Below this share of all samples, and this number, none was found for the names.
ABSENT_SHARE, ABSENT_SAMPLES = 0.0005, 3
#: Right names among the labelled samples of known classes, and all samples rightly placed, percent:
#: below the first of each the labels contradict the run, from the second on they bear it out.
LABELLED_NAMES, LABELLED_ALL = (50.0, 70.0), (30.0, 60.0)
#: Samples after the buffer that fit their groups worse, in standard deviations of the score, and
#: that fall into other categories, as a share beyond chance: a look, a fault.
LATER_WORSE, LATER_ELSEWHERE = (0.25, 0.5), (0.1, 0.3)
#: Share of the samples after the buffer that are from folders that it saw nothing of.
LATER_FOLDERS = 0.1


@dataclass(frozen=True)
class Facts:
    """All that decides a verdict.

    Attributes
    ----------
    samples, noun
        How many samples were answered, and what they are called.
    names
        The known classes; there may be none.
    signs
        What the answers say about names and groups.
    reliability
        How far clusters made without the names bear them out; None where it is not defined.
    novel, novel_range, novel_given, count_judged
        L, between which numbers it lies, whether it was given, and whether it could be counted.
    right_names, right_all
        With labels, in percent: samples of known classes with the right name, and all samples that
        are where they belong.
    late
        Known classes whose samples all came after the buffer.
    later_worse, later_elsewhere
        How much worse samples after the buffer fit, and how differently they are placed.
    later_folders
        Folders that the buffer saw nothing of, where they hold many of the later samples.
    unevidenced
        Known classes that the method itself found no evidence for.
    faults, looks
        Other findings: what makes every answer doubtful, and what is worth a look.
    """

    samples: int
    names: tuple[str, ...] = ()
    noun: tuple[str, str] = ("image", "images")
    signs: Signs = field(default_factory=Signs)
    reliability: float | None = None
    novel: int = 0
    novel_range: tuple[int, int] | None = None
    novel_given: bool = True
    count_judged: bool = True
    right_names: float | None = None
    right_all: float | None = None
    late: tuple[str, ...] = ()
    later_worse: float = 0.0
    later_elsewhere: float = 0.0
    later_folders: tuple[str, ...] = ()
    unevidenced: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    looks: tuple[str, ...] = ()


def doubted_names(facts: Facts) -> list[str]:
    """Names whose own answers are most likely wrong, the most doubtful first."""
    signs = facts.signs
    meant = signs.standing_out or (1.0,) * len(signs.names)
    doubted = [
        (confidence, name)
        for confidence, out, name in zip(signs.names, meant, facts.names)
        if confidence is not None and confidence < (DOUBTED_UNMEANT if out < UNMEANT else DOUBTED)
    ]
    return [name for _, name in sorted(doubted, key=lambda pair: pair[0])]


def doubted_share(facts: Facts) -> float:
    """The share of doubted names among those with answers enough."""
    judged = sum(confidence is not None for confidence in facts.signs.names)
    return len(doubted_names(facts)) / judged if judged else 0.0


def names_fit(facts: Facts) -> float | None:
    """How well the names fit, 0 to 1: the mean of what there is of the share of names that are not
    doubted, the median confidence of the answers with a name, and the names' reliability. None of
    these alone tells names of other things from few samples, few names or a hard style."""
    if facts.signs.known_confidence is None:
        return None
    parts = [1.0 - doubted_share(facts), facts.signs.known_confidence]
    if facts.reliability is not None:
        parts.append(facts.reliability)
    return sum(parts) / len(parts)


def names_level(facts: Facts) -> Level:
    """Whether all names fit, some do not, or none does. One name alone is not judged: there is
    nothing that its samples could have been instead."""
    if facts.names and len(facts.unevidenced) == len(facts.names):
        return "bad"
    fit = names_fit(facts)
    if fit is None or len(facts.names) < 2:
        return "good"
    if fit < NONE_FIT or _unrelated(facts):
        return "bad"
    return "look" if fit < ALL_FIT or doubted_share(facts) >= SOME_DOUBTED else "good"


def _unrelated(facts: Facts) -> bool:
    reliability, sure = facts.reliability, facts.signs.known_confidence
    if reliability is None or sure is None:
        return False
    return reliability < UNRELATED and sure < UNLESS_SURE


def buffer_level(facts: Facts) -> Level:
    """Whether answers after the buffer are unlike those in it."""
    signs = ((facts.later_worse, LATER_WORSE), (facts.later_elsewhere, LATER_ELSEWHERE))
    if any(value > fault for value, (_, fault) in signs):
        return "bad"
    return "look" if any(value > look for value, (look, _) in signs) else "good"


def order_level(facts: Facts) -> Level:
    """Whether the stream was out of order: its beginning unlike the rest."""
    level = buffer_level(facts)
    return "look" if level == "good" and (facts.late or facts.later_folders) else level


def labels_say(facts: Facts) -> Level | None:
    """What the labels say, None without any."""
    given = ((facts.right_names, LABELLED_NAMES), (facts.right_all, LABELLED_ALL))
    said = [(value, bounds) for value, bounds in given if value is not None]
    if not said:
        return None
    if any(value < least for value, (least, _) in said):
        return "bad"
    return "look" if any(value < enough for value, (_, enough) in said) else "good"
