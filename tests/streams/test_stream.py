"""Batches: order, size, what is set aside, going on, reading ahead and stopping."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from ttgcd.errors import InputError
from ttgcd.streams.arrays import open_array
from ttgcd.streams.base import Batch, Rejected, Rejection, Source
from ttgcd.streams.stream import Stream, stream_order


class Counted(Source):
    """Pictures that hold their own number; some are broken; counts what is read."""

    def __init__(self, length: int, broken: Sequence[int] = (), slow: bool = False) -> None:
        self.length, self.broken, self.slow = length, set(broken), slow
        self.reads: list[int] = []

    def __len__(self) -> int:
        return self.length

    def id(self, position: int) -> str:
        return f"s{position}"

    def read(self, position: int) -> np.ndarray:
        self.reads.append(position)
        if self.slow:
            time.sleep(0.001 * (position % 3))
        if position in self.broken:
            raise Rejection("broken on purpose")
        return np.full((7, 7, 3), position % 256, np.uint8)


def numbers(batches: Sequence[Batch]) -> list[list[int]]:
    return [batch.images[:, 0, 0, 0].tolist() for batch in batches]  # type: ignore[index]


def same(one: Batch, other: Batch) -> bool:
    for name in ("ids", "start", "positions", "next_position", "places"):
        if getattr(one, name) != getattr(other, name):
            return False
    if one.features is not None:
        return np.array_equal(one.features, other.features)
    return torch.equal(one.images, other.images)


def test_batches_are_full_although_samples_are_set_aside(crop) -> None:
    stream = Stream(Counted(23, broken=[0, 5, 6, 7, 13, 22]), crop, batch_size=6)
    batches = list(stream)
    assert numbers(batches) == [[1, 2, 3, 4, 8, 9], [10, 11, 12, 14, 15, 16], [17, 18, 19, 20, 21]]
    assert [batch.start for batch in batches] == [0, 6, 12]
    assert [batch.next_position for batch in batches] == [10, 17, 23]
    assert batches[0].ids == ("s1", "s2", "s3", "s4", "s8", "s9")
    assert batches[0].images.dtype == torch.uint8 and batches[0].images.shape == (6, 3, 6, 6)
    assert [one.position for one in stream.rejected] == [0, 5, 6, 7, 13, 22]
    assert stream.rejected[0] == Rejected("s0", 0, "broken on purpose", 0)
    assert stream.total == 23


def test_rejected_list_never_runs_ahead_of_the_batches(crop) -> None:
    stream = Stream(Counted(60, broken=range(0, 60, 3)), crop, batch_size=8, ahead=3)
    for batch in stream:
        expected = [position for position in range(0, batch.next_position, 3)]
        assert [one.position for one in stream.rejected] == expected


def test_rejections_after_the_last_full_batch_are_listed(crop) -> None:
    stream = Stream(Counted(10, broken=[8, 9]), crop, batch_size=8)
    assert len(list(stream)) == 1
    assert [one.position for one in stream.rejected] == [8, 9]


def test_nothing_readable(crop) -> None:
    stream = Stream(Counted(5, broken=range(5)), crop)
    assert list(stream) == [] and len(stream.rejected) == 5


@pytest.mark.parametrize("workers", [0, 1, 2, 5])
@pytest.mark.parametrize("seed", [None, 7])
def test_worker_count_changes_nothing(crop, workers: int, seed: int | None) -> None:
    def run(workers: int, ahead: int) -> tuple[list[Batch], list[Rejected]]:
        source = Counted(90, broken=[1, 2, 40, 89], slow=True)
        stream = Stream(source, crop, 20, seed, workers=workers, ahead=ahead)
        return list(stream), stream.rejected

    batches, rejected = run(workers, ahead=2)
    expected, expected_rejected = run(0, ahead=1)
    assert rejected == expected_rejected
    assert len(batches) == len(expected) and all(map(same, batches, expected))


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("batch_size", [1, 7, 16, 33])
def test_going_on_gives_the_same_batches(crop, seed: int | None, batch_size: int) -> None:
    source = Counted(75, broken=[0, 3, 30, 31, 32, 33, 74])
    stream = Stream(source, crop, batch_size, seed)
    whole = list(stream)
    for done, last in enumerate(whole, 1):
        rest = Stream(
            source,
            crop,
            batch_size,
            seed,
            start_position=last.next_position,
            start_index=last.start + len(last),
        )
        again = list(rest)
        assert len(again) == len(whole) - done and all(map(same, again, whole[done:]))
        before = [one for one in stream.rejected if one.place < last.next_position]
        assert before + rest.rejected == stream.rejected


def test_a_split_batch_can_be_continued_in_its_middle(crop) -> None:
    source = Counted(40, broken=[2, 5, 6, 11])
    with Stream(source, crop, 12, shuffle_seed=1) as stream:
        batch = next(iter(stream))
    for at in range(len(batch) + 1):
        first, rest = batch.split(at)
        assert first.ids + rest.ids == batch.ids
        assert torch.equal(torch.cat([first.images, rest.images]), batch.images)
        assert (len(first), rest.start, rest.next_position) == (at, at, batch.next_position)
        with Stream(source, crop, 12 - at or 12, 1, first.next_position, at) as follow:
            if at < len(batch):
                assert same(next(iter(follow)), rest)


def test_split_of_a_batch_without_places() -> None:
    batch = Batch(("a", "b", "c"), 5, (0, 1, 2), 8, features=np.eye(3, dtype=np.float32))
    first, rest = batch.split(1)
    assert (first.next_position, rest.next_position, rest.start) == (6, 8, 6)
    np.testing.assert_array_equal(rest.features, np.eye(3)[1:])
    with pytest.raises(ValueError, match="cannot split"):
        batch.split(4)


def test_shuffled_order_is_fixed_for_all_time() -> None:
    # Frozen by numpy's promise for RandomState: a change here would break resumed runs.
    assert stream_order(10, 0).tolist() == [2, 8, 4, 9, 1, 6, 7, 3, 0, 5]
    assert stream_order(4, None).tolist() == [0, 1, 2, 3]
    assert sorted(stream_order(1000, 5)) == list(range(1000))
    assert stream_order(1000, 5).tolist() != stream_order(1000, 6).tolist()


def test_shuffled_batches_follow_the_order(crop) -> None:
    batches = list(Stream(Counted(50), crop, 16, shuffle_seed=9))
    positions = [position for batch in batches for position in batch.positions]
    assert positions == stream_order(50, 9).tolist()
    assert [n for batch in numbers(batches) for n in batch] == positions


def test_reading_ahead_is_bounded(crop) -> None:
    source = Counted(1000)
    stream = Stream(source, crop, batch_size=10, workers=3, ahead=2)
    outstanding = []
    for batch in stream:
        time.sleep(0.005)
        outstanding.append(len(source.reads) - (batch.start + len(batch)))
    # Two batches ahead, and no more; but ahead it is.
    assert max(outstanding) <= 20
    assert max(outstanding) > 0
    stream.close()


def test_iterators_collected_in_any_thread_do_not_block(crop) -> None:
    """Cycles keep abandoned iterators until the collector meets them, perhaps in a worker."""
    for _ in range(30):
        with Stream(Counted(64), crop, 8) as stream:
            iterator = iter(stream)
            next(iterator)
            cycle: list[object] = [iterator]
            cycle.append(cycle)
        abandoned = iter(Stream(Counted(64, slow=True), crop, 8))
        next(abandoned)
        cycle = [abandoned]
        cycle.append(cycle)
        del iterator, abandoned, cycle
    gc.collect()
    patience = time.monotonic() + 10
    while decoding_threads() and time.monotonic() < patience:
        time.sleep(0.01)
    assert decoding_threads() == []


def decoding_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("ttgcd-decode")]


def test_threads_end_when_the_stream_ends(crop) -> None:
    list(Stream(Counted(30), crop, 4))
    assert decoding_threads() == []


def test_threads_end_when_the_consumer_leaves(crop) -> None:
    source = Counted(10_000, slow=True)
    for _ in Stream(source, crop, 4):
        break
    patience = time.monotonic() + 10
    while decoding_threads() and time.monotonic() < patience:
        time.sleep(0.01)
    assert decoding_threads() == []
    assert len(source.reads) < 200


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_threads_end_when_the_consumer_raises(crop, error: type[BaseException]) -> None:
    with pytest.raises(error), Stream(Counted(10_000, slow=True), crop, 4) as stream:
        for _ in stream:
            assert decoding_threads()
            raise error
    assert decoding_threads() == []


def test_a_fault_of_the_program_is_not_taken_for_a_broken_image() -> None:
    def faulty(image: np.ndarray) -> torch.Tensor:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(Stream(Counted(30), faulty))
    assert decoding_threads() == []


def test_iterating_again_starts_again(crop) -> None:
    stream = Stream(Counted(20, broken=[3]), crop, 8)
    first, second = list(stream), list(stream)
    assert all(map(same, first, second)) and len(stream.rejected) == 1


def test_arrays_are_preprocessed_together() -> None:
    seen = []

    def record(images: np.ndarray) -> torch.Tensor:
        seen.append(images.shape)
        return torch.from_numpy(images.transpose(0, 3, 1, 2).copy())

    images = np.arange(20 * 4 * 4 * 3, dtype=np.uint8).reshape(20, 4, 4, 3)
    batches = list(Stream(open_array(images), record, 10))
    assert all(len(shape) == 4 for shape in seen) and len(seen) < 5
    joined = torch.cat([batch.images for batch in batches])
    np.testing.assert_array_equal(joined.numpy(), images.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("seed", [None, 2])
def test_embeddings(seed: int | None) -> None:
    rows = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    batches = list(Stream(open_array(rows), None, 16, seed))
    assert [len(batch) for batch in batches] == [16, 16, 16, 2] and batches[0].images is None
    order = stream_order(50, seed)
    expected = (rows / np.linalg.norm(rows, axis=1, keepdims=True))[order]
    features = np.concatenate([batch.features for batch in batches])
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, expected, atol=1e-6)
    assert batches[0].ids[0] == str(order[0])
    middle = Stream(open_array(rows), None, 16, seed, 32, 32)
    assert all(map(same, middle, batches[2:]))


def test_real_preprocessing_gives_the_same_whatever_comes_together() -> None:
    from ttgcd.vlm.preprocess import Preprocess

    images = np.random.default_rng(0).integers(0, 256, (40, 30, 20, 3), dtype=np.uint8)
    source, preprocess = open_array(images), Preprocess(16)
    whole = list(Stream(source, preprocess, 9))
    for last in whole[:3]:
        after = last.next_position
        again = Stream(source, preprocess, 9, start_position=after, start_index=after)
        assert all(map(same, again, whole[after // 9 :]))
    alone = torch.stack([preprocess(image) for image in images])
    assert torch.equal(torch.cat([batch.images for batch in whole]), alone)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch size"),
        ({"shuffle_seed": -1}, "seed"),
        ({"start_position": 21}, "position 21"),
        ({"workers": -1}, "workers"),
        ({"ahead": 0}, "ahead"),
    ],
)
def test_wrong_arguments(crop, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Stream(Counted(20), crop, **options)


def test_images_need_a_preprocessing() -> None:
    with pytest.raises(ValueError, match="preprocessing"):
        Stream(Counted(3))
