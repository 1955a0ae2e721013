"""What this machine can do: for `ttgcd doctor`, and for whoever asks what is missing."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import time
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from ttgcd import __version__
from ttgcd.wording import counted, listed

Level = Literal["ok", "note", "missing", "bad"]

#: extras that a user of the package may want; the others are for its developers
_NOT_FOR_USERS = {"dev", "docs", "training", "test", "neighbours"}
_MODEL_TYPES = {"clip", "siglip", "siglip2"}
#: A step of the re-alignment costs a forward and a backward pass, about three forward passes.
_STEP = 3.0
_SECONDS_OF_MEASURING = 2.0


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, what was seen, what to do about it."""

    level: Level
    topic: str
    seen: str
    advice: str = ""


@dataclass(frozen=True)
class Pace:
    """How fast a model encodes here, and what a folder costs with the default settings."""

    model: str
    device: str
    threads: int
    images_per_second: float
    warmup: int
    epochs: int

    def seconds(self, images: int) -> float:
        """Every image is encoded once; the buffer is gone through once an epoch besides."""
        buffered = min(self.warmup, images)
        return (images + buffered * self.epochs * _STEP) / self.images_per_second


def examine(timeout: float = 3.0) -> list[Finding]:
    """Everything that can be seen without loading a model."""
    return [_python(), _torch(), *_memory(), _hub(timeout), _cached(), *_formats(), *_extras()]


def pace(model: str, device: str = "auto") -> Pace:
    """Encode blank images for about two seconds."""
    import torch

    from ttgcd.discovery.settings import Settings
    from ttgcd.vlm import load_vlm

    method = Settings(model=model).make_method()
    vlm = load_vlm(model, device)
    one = vlm.preprocess(_blank())
    batch = one.unsqueeze(0).repeat(16, 1, 1, 1)
    encode = vlm.encoder()
    encode(batch)  # the first time, memory is allocated and kernels are chosen
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < _SECONDS_OF_MEASURING:
        encode(batch)
        done += len(batch)
    rate = done / (time.perf_counter() - began)
    return Pace(
        model=model,
        device=str(vlm.device),
        threads=torch.get_num_threads(),
        images_per_second=rate,
        warmup=int(getattr(method, "warmup", 0)),
        epochs=int(getattr(method, "epochs", 0)),
    )


def best_model_at_hand() -> str:
    """The default model when it is in the cache, else the embedded one."""
    from ttgcd.vlm import DEFAULT

    return DEFAULT if DEFAULT in cached_models() else "mini"


def cached_models() -> list[str]:
    """Hub ids of the CLIP-like models whose configuration is in the Hugging Face cache."""
    from huggingface_hub import constants

    found = []
    for folder in sorted(Path(constants.HF_HUB_CACHE).glob("models--*")):
        configs = [
            *folder.glob("snapshots/*/config.json"),
            *folder.glob("snapshots/*/open_clip_config.json"),
        ]
        if any(_usable(config) for config in configs):
            found.append(folder.name.removeprefix("models--").replace("--", "/"))
    return found


def missing_packages(extra: str) -> list[str]:
    """Packages of one of our extras that are not installed."""
    return [name for name in _requirements().get(extra, []) if not _installed(name)]


def as_json(findings: list[Finding], pace: Pace | None) -> dict[str, Any]:
    """For programs."""
    return {
        "findings": [asdict(finding) for finding in findings],
        "pace": None if pace is None else asdict(pace),
    }


def _blank() -> Any:
    import numpy as np

    return np.full((480, 640, 3), 128, np.uint8)


def _python() -> Finding:
    seen = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding("ok", "Python", f"{seen}, ttgcd {__version__}")


def _torch() -> Finding:
    try:
        import torch
    except Exception as error:  # a broken build fails in many ways
        return Finding("bad", "torch", f"cannot be imported ({error})", "pip install torch")
    devices = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    where = listed(devices) if devices else "no GPU: everything runs on the processor"
    cores = counted(os.cpu_count() or 1, "core")
    threads = counted(torch.get_num_threads(), "thread")
    return Finding("ok", "torch", f"{torch.__version__}; {where}; {threads} on {cores}")


def _memory() -> list[Finding]:
    findings = []
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        kilobytes = {k: int(v.split()[0]) for k, v in re.findall(r"(\w+):\s+(.+)", text)}
        free, total = kilobytes["MemAvailable"] / 2**20, kilobytes["MemTotal"] / 2**20
        low = free < 2.0
        advice = "little: a smaller batch size or a smaller model needs less" if low else ""
        seen = f"{free:.1f} of {total:.1f} GB free"
        findings.append(Finding("note" if low else "ok", "memory", seen, advice))
    except (OSError, KeyError, ValueError):
        pass  # not Linux
    disk = shutil.disk_usage(".").free / 2**30
    advice = "little: checkpoints need room while a run goes on" if disk < 1 else ""
    findings.append(Finding("note" if advice else "ok", "disk", f"{disk:,.0f} GB free", advice))
    return findings


def _hub(timeout: float) -> Finding:
    """Without the network everything works from the cache, from a folder, or with mini."""
    import urllib.error
    import urllib.request

    from huggingface_hub import constants

    ways = "use a cached model, a downloaded folder, or mini"
    if constants.HF_HUB_OFFLINE:
        return Finding("note", "model hub", "switched off by HF_HUB_OFFLINE", ways)
    try:
        request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
        with urllib.request.urlopen(request, timeout=timeout):
            pass
    except urllib.error.HTTPError:
        pass  # it answered
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return Finding("note", "model hub", f"cannot be reached ({reason})", ways)
    return Finding("ok", "model hub", "can be reached")


def _cached() -> Finding:
    from ttgcd.vlm import DEFAULT

    models = cached_models()
    seen = f"mini (embedded); in the cache: {listed(models) if models else 'none'}"
    if DEFAULT in models:
        return Finding("ok", "models", seen)
    advice = f"the default, {DEFAULT}, is fetched on first use (600 MB)"
    return Finding("note", "models", seen, advice)


def _formats() -> list[Finding]:
    from ttgcd.streams.formats import FORMATS, HAS_AVIF, HAS_HEIC

    findings = [Finding("ok", "formats", ", ".join(FORMATS))]
    if not HAS_HEIC:
        advice = "pip install 'ttgcd[heic]'"
        findings.append(Finding("missing", "HEIC", "phone photos are set aside", advice))
    if not HAS_AVIF:
        advice = "pip install --upgrade pillow"
        findings.append(Finding("missing", "AVIF", "this Pillow cannot read it", advice))
    return findings


def _extras() -> list[Finding]:
    return [
        Finding("missing", extra, f"needs {listed(lacking)}", f"pip install 'ttgcd[{extra}]'")
        for extra in sorted(_requirements())
        if extra not in _NOT_FOR_USERS and extra != "heic" and (lacking := missing_packages(extra))
    ]


def _requirements() -> dict[str, list[str]]:
    """Packages by extra, from the metadata of the installed package."""
    found: dict[str, list[str]] = {}
    for line in metadata.requires("ttgcd") or []:
        package, extra = (
            re.match(r"[\w.-]+", line),
            re.search(r"extra\s*==\s*['\"](.+?)['\"]", line),
        )
        if package and extra:
            found.setdefault(extra[1], []).append(package[0])
    return found


def _installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return find_spec(package.replace("-", "_")) is not None
    return True


def _usable(config: Path) -> bool:
    if config.name == "open_clip_config.json":
        return True
    try:
        content = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("model_type") in _MODEL_TYPES
