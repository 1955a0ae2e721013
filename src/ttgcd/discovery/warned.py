"""What methods warn of, for the notes of a run."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def user_warnings() -> Iterator[Callable[[], list[str]]]:
    """Catch warnings; the call gives the texts so far, each once. Only the main thread may."""
    if threading.current_thread() is not threading.main_thread():
        yield list
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield lambda: sorted(
            {str(w.message) for w in caught if issubclass(w.category, UserWarning)}
        )
