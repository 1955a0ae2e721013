"""The commands of the documentation with options behind them that make them small."""

from __future__ import annotations

from tests.docs.benchmark_data import MODEL
from ttgcd.discovery.settings import Settings

#: One epoch on a buffer of 80: what is held here is that the commands work, not how well.
EPOCHS = ["--epochs", "1"] if hasattr(Settings(known=["a"]).make_method(), "epochs") else []
DISCOVER = [*EPOCHS, "--warmup", "80", "--quiet"]
#: The stream that stands for all streams of a benchmark, and of an experiment that names none.
STREAM = {"cifar10-c": "fog", "iconshift": "line", "fashion-mnist": "test"}
STREAM |= {"main": "fog", "sweeps": "spatter", "settle": "spatter", "domainnet": "sketch"}
#: Of long experiments a method that learns, one that trains and one that does neither.
FEW = {
    "main": "PACT (robust seeds),TENT++,zero-shot",
    "domainnet": "zero-shot",
    "estimated_l": "PACT,zero-shot",
    "cost": "PACT",
    "sweeps": "tent++",
    "iconshift": "PACT,Scout,zero-shot",
    "fashion": "PACT,zero-shot",
}


def _experiment(arguments: list[str], experiment: str) -> list[str]:
    """One stream, one seed, few images and a model that takes no time."""
    if "--dry-run" in arguments:
        return ["--model", MODEL, "--streams", "spatter"]
    few = "120" if experiment == "estimated_l" else "30"  # L is looked for among so many
    small = ["--model", MODEL, "--seeds", "0", "--limit", few, "--threads", "1"]
    if "--streams" in arguments:
        stream = arguments[arguments.index("--streams") + 1].split(",")[0]
    elif "--benchmarks" in arguments:
        given = arguments[arguments.index("--benchmarks") + 1].split(",")
        stream = ",".join(STREAM[benchmark] for benchmark in given)
    else:
        stream = STREAM[experiment]
    small += ["--streams", stream]
    if experiment in FEW and "--methods" not in arguments:
        small += ["--methods", FEW[experiment]]
    return small


def made_small(arguments: list[str]) -> list[str]:
    """The arguments of a call of ``ttgcd``, with what makes it small behind them."""
    match arguments:
        case ["discover", *_]:
            # A run that goes on has the settings of the run before.
            words = ["--quiet"] if "--from" in arguments else DISCOVER
            if "ray" in arguments:
                words = [*words, "--workers", "1"]
        case ["estimate", *_]:
            paper = ["--warmup", "80"] if "silhouette" in arguments else []
            words = [*paper, "--quiet"]
        case ["bench", "run", experiment, *_]:
            return [*arguments, *_experiment(arguments, experiment)]
        case ["bench", "pack", *_]:
            return [*arguments, "--limit", "40", "--vocabulary", "none"]
        case ["bench", "table", *_] if "--model" in arguments:
            return [*arguments, "--model", MODEL]
        case ["bench", "settle", *_]:
            return [*arguments, *_experiment(arguments, "settle")]
        case ["corrupt" | "data", *_] if "cifar10-c" in arguments or arguments[0] == "corrupt":
            return [*arguments, "--workers", "1"]
        case _:
            words = []
    given = [
        word
        for n, word in enumerate(words)
        if word == "--workers"
        or words[n - 1] == "--workers"
        or (word not in arguments and words[n - 1] not in arguments)
    ]
    return [*arguments, *given]
