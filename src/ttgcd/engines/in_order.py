"""Blocks of a long table worked on by every core, handed over in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from itertools import islice
from typing import TypeVar

from threadpoolctl import ThreadpoolController

_Item = TypeVar("_Item")
_Done = TypeVar("_Done")


def in_order(
    work: Callable[[_Item], _Done], items: Iterable[_Item]
) -> Generator[_Done, None, None]:
    """``work`` of every item, as ``map`` would give it, one block a core at a time.

    A block is a few large products and many passes over what they gave: two cores do two blocks
    faster than two threads of BLAS do one. No more is in memory than the blocks in hand and one
    that is done.
    """
    cores, left = blas_threads(), iter(items)
    with one_blas_thread(), ThreadPoolExecutor(cores, thread_name_prefix="ttgcd-blocks") as pool:
        coming: deque[Future[_Done]] = deque()
        try:
            while True:
                coming += [
                    pool.submit(work, item) for item in islice(left, cores + 1 - len(coming))
                ]
                if not coming:
                    return
                yield coming.popleft().result()
        finally:
            for future in coming:
                future.cancel()


def one_blas_thread() -> AbstractContextManager[object]:
    """Within it, matrix products of numpy keep to this thread."""
    return thread_pools().limit(limits=1, user_api="blas")


def every_blas_thread() -> AbstractContextManager[object]:
    """Within it, matrix products of numpy may take all the cores that this process was given."""
    return thread_pools().limit(limits=blas_threads(), user_api="blas")


@cache
def blas_threads() -> int:
    """The threads of BLAS, as this process was given them: ask before they are limited."""
    libraries = thread_pools().select(user_api="blas").info()
    return max((library["num_threads"] for library in libraries), default=1)


@cache
def thread_pools() -> ThreadpoolController:
    """Finding the libraries takes milliseconds: once a process."""
    return ThreadpoolController()
