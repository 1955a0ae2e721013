"""Images to play with: one domain of IconShift arrives in a stream, a few at a time."""

from __future__ import annotations

import random
import threading
import time

from ttgcd.datasets.iconshift import iconshift_classes, load_iconshift
from ttgcd.service.errors import ServiceError
from ttgcd.service.house import House
from ttgcd.service.journal import Entry
from ttgcd.service.live import LiveStream
from ttgcd.streams.decode import decode

STREAM, DOMAIN, WARMUP, BATCH = "icons", "line", 512, 64
_AT_ONCE, _PAUSE = 6, 0.35


def play(house: House) -> None:
    """Create the stream if it is not there, and let images arrive that it does not have yet."""
    known, novel = iconshift_classes()
    if STREAM not in {stream.name for stream in house.streams()}:
        settings = {
            "known": list(known),
            "novel": len(novel),
            "changes": {"warmup": WARMUP},
            "batch_size": BATCH,
        }
        house.create(STREAM, settings)
    stream = house.stream(STREAM)
    threading.Thread(target=_arrive, args=(house, stream), name="ttgcd-play", daemon=True).start()


def _arrive(house: House, stream: LiveStream) -> None:
    source, _ = load_iconshift(DOMAIN)
    order = list(range(len(source)))
    random.Random(0).shuffle(order)
    left = [i for i in order if source.id(i) not in stream.journal.ids]
    for start in range(0, len(left), _AT_ONCE):
        while stream.paused and house.ready:
            time.sleep(_PAUSE)
        entries = []
        for position in left[start : start + _AT_ONCE]:
            data = source.read(position)
            assert isinstance(data, bytes)
            entries.append(Entry(source.id(position), data, stream.vlm.preprocess(decode(data))))
        try:
            stream.receive(entries, wait=False)[1].result()
        except (ServiceError, OSError):
            return  # the service stops
        time.sleep(_PAUSE)
