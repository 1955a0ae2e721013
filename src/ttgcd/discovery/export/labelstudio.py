"""Label Studio: tasks with predictions, and the labelling interface that they fit."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from ttgcd import __version__
from ttgcd.discovery.export.folders import whole
from ttgcd.discovery.export.items import Exported, Item, Items

#: Names of the control and of the object in the interface; predictions refer to them.
_CONTROL, _OBJECT = "category", "image"


def to_labelstudio(items: Items, target: Path, prefix: str) -> Exported:
    """``target/tasks.json`` for import, ``target/interface.xml`` for the project's settings."""
    tasks = [_task(item, prefix) for item in items]
    names = sorted({item.name for item in items})
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in names)
    interface = (
        "<View>\n"
        f'  <Image name="{_OBJECT}" value="$image"/>\n'
        f'  <Choices name="{_CONTROL}" toName="{_OBJECT}" choice="single">\n{choices}\n'
        "  </Choices>\n</View>\n"
    )
    with whole(target) as unfinished:
        (unfinished / "tasks.json").write_text(json.dumps(tasks, indent=1), "utf-8")
        (unfinished / "interface.xml").write_text(interface, "utf-8")
    return Exported(target, len(items), items.notes())


def _task(item: Item, prefix: str) -> dict[str, object]:
    confidence = item.row.get("confidence")
    score = float(item.row["score"] if confidence is None else confidence)
    choice = {
        "from_name": _CONTROL,
        "to_name": _OBJECT,
        "type": "choices",
        "value": {"choices": [item.name]},
    }
    return {
        "data": {
            "image": prefix + quote(item.id.encode("utf-8", "replace")),
            "id": item.id,
            "category": item.category,
            "kind": item.kind,
        },
        "predictions": [
            {"model_version": f"ttgcd {__version__}", "score": score, "result": [choice]}
        ],
    }
