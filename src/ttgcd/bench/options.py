"""Options of methods and benchmarks that a run changes: from the command line or a selection."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ttgcd.bench.experiment import Experiment, Variant
from ttgcd.errors import InputError

Options = Mapping[str, Any]
SELECTED = "selected.json"  # where the results page looks for the arms that were selected


def parse_setting(text: str) -> tuple[str, str, Any]:
    """``tent++.lr=3e-4`` as (name, option, value). Values are JSON; anything else is a string."""
    left, equals, given = text.partition("=")
    name, dot, option = left.strip().rpartition(".")
    if not (equals and dot and name and option):
        raise InputError(
            f"--set {text!r}: write NAME.OPTION=VALUE, e.g. tent++.lr=3e-4 or cifar10-c.severity=3"
        )
    try:
        value = json.loads(given)
    except ValueError:
        value = given.strip()
    return name, option, value


def with_settings(experiment: Experiment, texts: Sequence[str]) -> Experiment:
    """The experiment with ``--set`` options: of a benchmark, a method, or a row by its label."""
    from ttgcd.datasets import BENCHMARKS

    methods: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, option, value = parse_setting(text)
        if name in BENCHMARKS:
            experiment = _with_benchmark_option(experiment, name, option, value)
        else:
            methods.setdefault(name, {})[option] = value
    return with_method_options(experiment, methods)


def _with_benchmark_option(
    experiment: Experiment, name: str, option: str, value: Any
) -> Experiment:
    if all(target.name != name for target in experiment.targets):
        here = ", ".join(target.name for target in experiment.targets)
        raise InputError(f"--set {name}.{option}: this run has {here}, not {name}")
    targets = tuple(
        replace(target, options={**target.options, option: value})
        if target.name == name
        else target
        for target in experiment.targets
    )
    return replace(experiment, targets=targets)


def with_method_options(
    experiment: Experiment, methods: Mapping[str, Options], must_match: bool = True
) -> Experiment:
    """The experiment with options by method name or row label.

    What a row varies itself stays as the row says. A row that differs from its default says so in
    its label, so that it never shares a line of a table with the row it came from.
    """
    variants = list(experiment.variants)
    for name, options in methods.items():
        places = [i for i, v in enumerate(variants) if name in (v.method, v.label)]
        if not places and must_match:
            known = ", ".join(dict.fromkeys(v.method for v in variants))
            raise InputError(f"--set {name}: no such method or row here; choose from {known}")
        for option in options if must_match else ():
            if all(option in variants[i].config for i in places):
                raise InputError(f"--set {name}.{option}: every row of this run fixes it itself")
        for place in places:
            variants[place] = _changed(variants[place], options)
    return replace(experiment, variants=tuple(variants))


def _changed(variant: Variant, options: Options) -> Variant:
    from ttgcd.methods.registry import load_method

    default = load_method(variant.method, **variant.config).config()
    config = {**options, **variant.config}
    now = load_method(variant.method, **config).config()
    new = {key: value for key, value in now.items() if value != default.get(key)}
    if not new:
        return variant
    return replace(variant, label=f"{variant.label} [{describe(new)}]", config=config)


def describe(options: Options) -> str:
    """Options in words, as they stand in a row's label."""
    return ", ".join(f"{key} {_said(value)}" for key, value in options.items())


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"({describe(value)})"
    return f"{value:g}" if isinstance(value, float) else str(value)


def base_label(label: str) -> str:
    """The row that a row with changed options came from."""
    return label.partition(" [")[0]


def settings_of(
    experiment: Experiment, row: Mapping[str, Any], selected: Mapping[str, Options]
) -> list[str]:
    """The ``--set`` options that make this row of the experiment's own: the way back.

    A row at the arm that was ``selected`` for its method, and nothing else, has ``--selected``.
    """
    from ttgcd.methods.registry import load_method

    told = [
        f"--set '{row['benchmark']}.{key}={json.dumps(v)}'" for key, v in row["options"].items()
    ]
    base = base_label(row["label"])
    variant = next((v for v in experiment.variants if v.label == base), None)
    if variant is None or base == row["label"]:
        return told
    default = load_method(variant.method, **variant.config).config()
    # The re-alignment is no option of the method's own: a row without it does not name it.
    options = (*default, "realign")
    config = row["config"].items()
    changed = {k: v for k, v in config if k in options and v != default.get(k)}
    if changed == selected.get(variant.method):
        return [*told, f"--selected results/{SELECTED}"]
    return told + [f"--set '{variant.method}.{key}={json.dumps(v)}'" for key, v in changed.items()]
