"""What the paper claims, whether it holds in the rows on disk, and the command that measures it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from ttgcd.bench.experiment import load_experiment
from ttgcd.bench.options import base_label
from ttgcd.bench.results import Row

Values = dict[str, float]


class Evidence:
    """The rows of one experiment on one benchmark, of one kind (model, limit, options)."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows

    def means(self, labels: Iterable[str], metric: str = "all") -> Values | None:
        """Mean of each label over the streams and seeds that all of them have; None without any."""
        found: dict[str, dict[tuple[str, int], float]] = {label: {} for label in labels}
        for row in self.rows:
            if row["label"] in found:
                value = row["metrics"].get(metric, row.get(metric))
                if value is not None:
                    found[row["label"]][row["stream"], row["seed"]] = value
        shared = set.intersection(*(set(values) for values in found.values()))
        if not shared:
            return None
        return {
            k: fmean(v for at, v in values.items() if at in shared) for k, values in found.items()
        }

    def deciles(self, label: str) -> list[float]:
        parts = [row["deciles"] for row in self.rows if row["label"] == label]
        return [fmean(values) for values in zip(*parts)]

    def measured(self, label: str) -> int:
        """On how many streams, with how many seeds."""
        return len({(row["stream"], row["seed"]) for row in self.rows if row["label"] == label})

    def labels(self) -> list[str]:
        return list(dict.fromkeys(row["label"] for row in self.rows))


@dataclass(frozen=True)
class Judged:
    """Whether a claim holds on one benchmark, and the figures."""

    holds: bool
    figures: str


Judge = Callable[[Evidence], "Judged | None"]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that rows of an experiment can bear out or not."""

    experiment: str
    text: str
    judge: Judge


def _baselines() -> list[str]:
    return [v.label for v in load_experiment("main").variants if v.in_paper and v.label != "PACT"]


def _most_measured(evidence: Evidence) -> list[str]:
    """The rows of every baseline, as it is and at the arm that a sweep selected for it. Where one
    was measured on more streams and seeds than the other, that one: a comparison is made on what
    all of its rows have."""
    rows = {label: evidence.measured(label) for label in evidence.labels()}
    found = []
    for baseline in _baselines():
        mine = [label for label in rows if base_label(label) == baseline]
        most = max((rows[label] for label in mine), default=0)
        found += [label for label in mine if rows[label] == most]
    return found


def _first(metric: str) -> Judge:
    """Against every row of a baseline that was measured as widely as its others."""

    def judge(evidence: Evidence) -> Judged | None:
        there = _most_measured(evidence)
        means = evidence.means(["PACT", *there], metric) if there else None
        if means is None:
            return None
        best = max(there, key=lambda label: means[label])
        holds = means["PACT"] > means[best]
        if holds and len({base_label(label) for label in there}) < len(_baselines()):
            return None  # one of the others may be ahead; being beaten needs no more rows
        return Judged(holds, f"PACT {means['PACT']:.1f}, {best} {means[best]:.1f}")

    return judge


def _rise(before: str, after: str, least: float, metric: str = "all") -> Judge:
    """``least`` is half of the smaller published gain."""

    def judge(evidence: Evidence) -> Judged | None:
        means = evidence.means([before, after], metric)
        if means is None:
            return None
        gain = means[after] - means[before]
        return Judged(gain >= least, f"{means[before]:.1f} to {means[after]:.1f} ({gain:+.1f})")

    return judge


def _range(labels: Sequence[str], most: float, metrics: Sequence[str]) -> Judge:
    def judge(evidence: Evidence) -> Judged | None:
        spreads = {}
        for metric in metrics:
            means = evidence.means(labels, metric)
            if means is None:
                return None
            spreads[metric] = max(means.values()) - min(means.values())
        shown = ", ".join(f"{metric.capitalize()} {s:.1f}" for metric, s in spreads.items())
        return Judged(max(spreads.values()) <= most, shown)

    return judge


def _buffer(evidence: Evidence) -> Judged | None:
    sizes = ("W 128", "W 256", "W 512", "W 1024", "W 2048")
    means = evidence.means(sizes)
    if means is None:
        return None
    values = [means[size] for size in sizes]
    holds = values[:4] == sorted(values[:4]) and values[4] <= values[3]
    return Judged(holds, " / ".join(f"{value:.1f}" for value in values))


def _rates(evidence: Evidence) -> Judged | None:
    parts, holds = [], True
    for low, high in (("eta 0.05", "eta 0.60"), ("lambda 0.10", "lambda 0.40")):
        known, novel = (evidence.means([low, high], metric) for metric in ("known", "novel"))
        if known is None or novel is None:
            return None
        up, down = known[high] - known[low], novel[high] - novel[low]
        holds = holds and up > 0 > down
        parts.append(f"{low} to {high.split()[1]}: Known {up:+.1f}, Novel {down:+.1f}")
    return Judged(holds, "; ".join(parts))


def _harmless(evidence: Evidence) -> Judged | None:
    means = evidence.means(["one-shot (PACT)", "continual lr 1e-05"])
    if means is None:
        return None
    away = means["continual lr 1e-05"] - means["one-shot (PACT)"]
    return Judged(abs(away) <= 0.2, f"{away:+.2f}")


def _collapse(once: str, going_on: str) -> Judge:
    def judge(evidence: Evidence) -> Judged | None:
        means = evidence.means([once, going_on])
        if means is None:
            return None
        holds = means[going_on] <= means[once] / 2
        return Judged(holds, f"{means[once]:.1f} to {means[going_on]:.1f}")

    return judge


def _flat(evidence: Evidence) -> Judged | None:
    deciles = evidence.deciles("PACT")
    if not deciles:
        return None
    gain = fmean(deciles[5:]) - fmean(deciles[:5])
    lowest = min(deciles[1:]) - deciles[1]
    figures = f"second half {gain:+.1f}; lowest later decile {lowest:+.1f} to the second"
    return Judged(gain >= 0 and lowest >= -2.0, figures)


def _one_forward(evidence: Evidence) -> Judged | None:
    there = [label for label in _baselines() if label in evidence.labels()]
    means = evidence.means(["PACT", *there], "forwards") if there else None
    if means is None:
        return None
    others = [means[label] for label in there]
    figures = (
        f"PACT {means['PACT']:.1f} forwards, {len(there)} of {len(_baselines())} baselines "
        f"{min(others):.1f} to {max(others):.1f}"
    )
    return Judged(means["PACT"] < min(others), figures)


_E_MIN = ("e_min 0.5", "e_min 1", "e_min 1.5", "e_min 2", "e_min 3", "e_min 5")
_RATES_OF = {
    name: tuple(f"{name} lr {rate}" for rate in ("0.001", "0.003", "0.01", "0.03"))
    for name in ("sgd", "adam")
}
_NONE, _REALIGNED = "no re-alignment, image", "re-alignment, image (PACT)"

CLAIMS = (
    Claim("main", "PACT is first of the eight methods on All", _first("all")),
    Claim("main", "PACT is first of the eight methods on Novel", _first("novel")),
    Claim("iconshift", "the same on All, on drawn icons (not in the paper)", _first("all")),
    Claim("fashion", "the same on All, on photographed clothes (not in the paper)", _first("all")),
    Claim(
        "components",
        "image prototypes raise All over text anchors (paper: +8.0, +16.9)",
        _rise("no re-alignment, text", _NONE, 4.0),
    ),
    Claim(
        "components",
        "re-alignment raises All (paper: +5.9, +4.5); here with SGD",
        _rise(_NONE, _REALIGNED, 2.2),
    ),
    Claim(
        "components",
        "re-alignment raises All; here with Adam",
        _rise(_NONE, "re-alignment (Adam), image", 2.2),
    ),
    Claim(
        "components",
        "re-alignment raises Novel (paper: +6.5, +7.1); here with SGD",
        _rise(_NONE, _REALIGNED, 3.2, "novel"),
    ),
    Claim("buffer", "All rises up to W = 1,024 and falls a little at 2,048", _buffer),
    Claim("rates", "a higher rate raises Known and lowers Novel", _rates),
    Claim(
        "e_min",
        "e_min from 0.5 to 5 moves no figure by more than 1.6",
        _range(_E_MIN, 1.6, ("all", "known", "novel")),
    ),
    Claim(
        "warmup_lr",
        "four learning rates lie within 1.6 of each other; here with SGD",
        _range(_RATES_OF["sgd"], 1.6, ("all",)),
    ),
    Claim(
        "warmup_lr",
        "four learning rates lie within 1.6 of each other; here with Adam",
        _range(_RATES_OF["adam"], 1.6, ("all",)),
    ),
    Claim("continual", "going on at 1e-5 changes All by at most 0.2", _harmless),
    Claim(
        "continual",
        "going on at 1e-2 destroys it; here with SGD",
        _collapse("one-shot (PACT)", "continual lr 0.01"),
    ),
    Claim(
        "continual",
        "going on at 1e-2 destroys it; here with Adam",
        _collapse("one-shot (Adam)", "continual lr 0.01 (Adam)"),
    ),
    Claim("stability", "All is flat from the second decile on, the second half above", _flat),
    Claim("estimated_l", "PACT is first on All when L is estimated", _first("all")),
    Claim("cost", "a batch costs PACT less than every baseline", _one_forward),
)


@dataclass(frozen=True)
class Finding:
    """A claim with its verdict on every benchmark that was measured."""

    claim: Claim
    verdict: str
    figures: str


def examine(experiment: str, rows: Sequence[Row]) -> list[Finding]:
    """The claims that an experiment's rows can say something about."""
    found = []
    for claim in CLAIMS:
        if claim.experiment != experiment:
            continue
        judged: dict[str, Judged] = {}
        for benchmark in dict.fromkeys(row["benchmark"] for row in rows):
            here = [row for row in rows if row["benchmark"] == benchmark]
            for evidence in _kinds(here):
                judgement = claim.judge(evidence)
                if judgement is not None:
                    judged[benchmark] = judgement
                    break
        if judged:
            holding = [name for name, judgement in judged.items() if judgement.holds]
            verdict = f"on {', '.join(holding)}" if holding else "no"
            if len(holding) == len(judged):
                verdict = "yes"
            figures = "; ".join(f"{name}: {v.figures}" for name, v in judged.items())
            found.append(Finding(claim, verdict, figures))
    return found


def _kinds(rows: Sequence[Row]) -> list[Evidence]:
    """The paper's setting before changed options, the most rows of a table before the longest
    streams: a comparison that lacks half of the methods is none."""
    kinds: dict[tuple[str, int | None, str], list[Row]] = {}
    for row in rows:
        kinds.setdefault((row["model"], row["limit"], str(row["options"])), []).append(row)

    def rank(kind: tuple[str, int | None, str]) -> tuple[bool, int, bool, int]:
        labels = len({row["label"] for row in kinds[kind]})
        return kind[2] != "{}", -labels, kind[1] is not None, -(kind[1] or 0)

    return [Evidence(kinds[kind]) for kind in sorted(kinds, key=rank)]


def markdown(findings: Sequence[Finding]) -> str:
    """The table that closes the page."""
    lines = ["| the paper's claim | holds here? | figures | command |", "|---|---|---|---|"]
    for finding in findings:
        command = f"`ttgcd bench table {finding.claim.experiment}`"
        lines.append(
            f"| {finding.claim.text} | {finding.verdict} | {finding.figures} | {command} |"
        )
    return "\n".join(lines) + "\n"
