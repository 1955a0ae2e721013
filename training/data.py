"""Batches for training: icons on random backgrounds in random colours, and CIFAR-10 photographs."""

from __future__ import annotations

import collections
import csv
import math
from pathlib import Path

import numpy as np
import torch
from corpus import CIFAR
from icons import SIDE
from torch.nn import functional as F

EMOJI = {"twemoji", "emojione", "emojione-v1", "emojione-monotone", "openmoji", "fxemoji"}
GENERIC = frozenset(
    [
        "face",
        "button",
        "arrow",
        "circle",
        "square",
        "mark",
        "person",
        "man",
        "woman",
        "up",
        "down",
        "left",
        "right",
        "people",
        "boy",
        "girl",
        "heavy",
        "white",
        "black",
        "red",
        "blue",
        "green",
        "yellow",
        "orange",
        "purple",
        "brown",
        "grey",
        "double",
        "back",
        "top",
        "bottom",
        "high",
        "low",
        "plus",
        "minus",
        "open",
        "closed",
        "mouth",
        "check",
        "cross",
        "exclamation",
        "question",
        "time",
        "family",
        "couple",
        "raised",
        "pointing",
        "index",
        "turned",
        "pair",
        "old",
        "thirty",
        "one",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "o",
        "off",
        "text",
        "file",
        "folder",
        "chart",
        "bar",
        "card",
        "horizontal",
        "vertical",
        "no",
        "dot",
        "slash",
        "full",
        "empty",
        "end",
        "mode",
        "service",
        "input",
        "point",
        "not",
        "next",
        "forward",
        "record",
        "stop",
        "pause",
        "play",
        "link",
        "badge",
        "label",
        "page",
        "tab",
        "triangle",
        "currency",
        "speed",
        "fast",
        "front",
        "frame",
        "control",
        "locked",
        "dash",
        "prohibited",
        "warning",
        "bookmark",
        "window",
        "volume",
        "clipboard",
        "call",
        "inbox",
        "desktop",
        "credit",
        "video",
        "mobile",
        "sparkle",
    ]
)
THINGS = 15.0  # how much more often an icon of a thing is drawn


class Corpus:
    """The rendered icons and CIFAR-10 with word targets and sampling weights."""

    def __init__(self, folder: Path, seed: int = 0, validation: int = 2000) -> None:
        with (folder / "index.csv").open() as file:
            rows = list(csv.reader(file))
        self.images = np.memmap(folder / "images.raw", np.uint8, "r").reshape(-1, SIDE, SIDE, 4)
        self.words = (folder / "words.txt").read_text().split()
        number = {word: i for i, word in enumerate(self.words)}
        self.mono = np.array([row[2] == "1" for row in rows])
        self.names = [row[3] for row in rows]
        targets = [[number[w] for w in name.split()] for name in self.names]
        self.targets = np.full((len(rows), max(map(len, targets))), -1, np.int64)
        for row, target in zip(self.targets, targets, strict=True):
            row[: len(target)] = target
        self.weight = self._weights(rows)
        photos = np.load(folder / "cifar10.npz")
        self.photos, self.labels = photos["train"], photos["train_labels"].astype(np.int64)
        self.photo_targets = np.array([number[word] for word in CIFAR])[self.labels]
        generator = np.random.default_rng(seed)
        order = generator.permutation(len(rows))
        self.valid, self.train = np.sort(order[:validation]), np.sort(order[validation:])
        order = generator.permutation(len(self.photos))
        self.photo_valid, self.photo_train = (
            np.sort(order[:validation]),
            np.sort(order[validation:]),
        )

    def _weights(self, rows: list[list[str]]) -> np.ndarray:
        """Rare words more often; what emoji name (objects, animals, food) THINGS times as often."""
        count: collections.Counter[str] = collections.Counter()
        emoji = collections.defaultdict(set)
        for name, _, _, words in rows:
            count.update(words.split())
            if name in EMOJI:
                for word in words.split():
                    emoji[word].add(name)
        things = {word for word, sets in emoji.items() if len(sets) >= 3} - GENERIC
        weight = np.empty(len(rows))
        for i, row in enumerate(rows):
            words = row[3].split()
            rarity = max(1 / math.sqrt(max(count[w], 30)) for w in words)
            weight[i] = rarity * (THINGS if things & set(words) else 1.0) / math.sqrt(len(words))
        return weight


def affine(
    count: int,
    generator: torch.Generator,
    shrink: float,
    grow: float,
    turn: float,
    shift: float,
    flip: float,
) -> torch.Tensor:
    """Random (count, 2, 3) maps from output to input coordinates."""
    uniform = torch.rand(4, count, generator=generator)
    zoom = torch.exp(uniform[0] * math.log(grow / shrink) + math.log(shrink))
    angle = torch.randn(count, generator=generator) * turn
    mirror = torch.where(uniform[1] < flip, -1.0, 1.0)
    cos, sin = torch.cos(angle) / zoom, torch.sin(angle) / zoom
    move = (uniform[2:4] * 2 - 1) * shift
    rows = torch.stack([cos * mirror, -sin, move[0], sin * mirror, cos, move[1]], 1)
    return rows.view(-1, 2, 3)


def icon_batch(
    pixels: np.ndarray, mono: np.ndarray, side: int, g: torch.Generator | None
) -> torch.Tensor:
    """RGBA uint8 NHWC -> float RGB NCHW in 0..1; augmented with a generator, else on white."""
    x = torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div_(255)
    x[:, :3] *= x[:, 3:]
    n = len(x)
    if g is None:
        if side != x.shape[-1]:
            x = F.interpolate(x, size=(side, side), mode="bilinear", antialias=True)
        return x[:, :3] + 1 - x[:, 3:]
    theta = affine(n, g, 0.7, 1.12, math.radians(7), 0.1, 0.25)
    x = F.grid_sample(
        x, F.affine_grid(theta, (n, 4, side, side), align_corners=False), align_corners=False
    )
    ink, alpha = x[:, :3], x[:, 3:]
    uniform = torch.rand(5, n, generator=g)
    ground = torch.rand(n, 3, generator=g)
    ground = torch.where(uniform[0, :, None] < 0.5, ground**0.4, ground)
    ground[uniform[1] < 0.5] = 1.0
    paint = torch.rand(n, 3, generator=g)
    paint[uniform[2] < 0.5] = 0.0
    # An icon of one colour must stand out from its ground.
    close = (paint.mean(1) - ground.mean(1)).abs() < 0.35
    ground[close] = torch.where(paint[close].mean(1, keepdim=True) < 0.55, 1.0, 0.0)
    single = torch.from_numpy(mono)[:, None, None, None]
    ink = torch.where(single, paint[:, :, None, None] * alpha, ink)
    image = ink + (1 - alpha) * ground[:, :, None, None]
    invert = (single[:, 0, 0, 0] & (uniform[3] < 0.12))[:, None, None, None]
    image = torch.where(invert, 1 - image, image)
    grey = (uniform[4] < 0.12)[:, None, None, None]
    image = torch.where(grey, image.mean(1, keepdim=True).expand_as(image), image)
    return jitter(image, g)


def photo_batch(pixels: np.ndarray, side: int, g: torch.Generator | None) -> torch.Tensor:
    x = torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div_(255)
    n = len(x)
    if g is None:
        return F.interpolate(x, size=(side, side), mode="bicubic", antialias=True).clamp_(0, 1)
    theta = affine(n, g, 0.95, 1.3, math.radians(4), 0.12, 0.5)
    grid = F.affine_grid(theta, (n, 3, side, side), align_corners=False)
    return jitter(F.grid_sample(x, grid, padding_mode="reflection", align_corners=False), g)


def jitter(image: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    """A little contrast and brightness; no corruption of the kinds the benchmark measures."""
    gain, offset = torch.rand(2, len(image), 1, 1, 1, generator=g)
    return ((image - 0.5) * (0.75 + 0.4 * gain) + 0.5 + (offset - 0.5) * 0.12).clamp_(0, 1)
