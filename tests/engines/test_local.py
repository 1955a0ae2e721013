"""The loop: every batch to the method, every answer to the sinks, nothing broken passes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.engines.worlds import (
    Pictures,
    embedding_stream,
    embedding_task,
    embeddings,
    image_stream,
    image_task,
    run_images,
)
from ttgcd.engines.local import Collector, run
from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer
from ttgcd.methods.pact import Pact
from ttgcd.streams.base import Batch
from ttgcd.vlm.encoder import Encoder


def test_revisions_replace_earlier_answers():
    collector = Collector()
    batch = Batch(("x", "y"), 0, (5, 9), 10)
    collector.write(batch, Answer.make(0, np.array([0, 1]), np.ones(2), final=False))
    collector.write(None, Answer.make(1, np.array([3]), np.array([0.5])))
    result = collector.result()
    assert result.ids == ["x", "y"]
    assert result.positions.tolist() == [5, 9]
    assert result.category.tolist() == [0, 3]
    assert result.score.tolist() == [1.0, 0.5]


def test_the_folder_run_and_the_run_in_memory_agree(tmp_path):
    import pyarrow.parquet as pq

    source = Pictures.make(200, broken=("0003.png",))
    task, method = image_task(), Pact(warmup=64, epochs=3, optimiser="adam", realign_batch_size=32)
    in_memory = run(method, task, image_stream(source, task)(0, 0))
    run_images(tmp_path, source)
    table = pq.read_table(tmp_path / "assignments.parquet")
    assert table.column("id").to_pylist() == in_memory.ids
    assert table.column("category").to_pylist() == in_memory.category.tolist()
    np.testing.assert_array_equal(table.column("score").to_numpy(), in_memory.score)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("at", [10, 170])
def test_broken_features_are_caught_at_their_batch(tmp_path, bad, at):
    """Sample 10 comes in the warm-up, sample 170 after it; 32 samples a batch."""
    task = image_task()
    vlm = task.vlm
    make_encoder = vlm.encoder

    def overflowing(norms=None, precision="fp32") -> Encoder:
        encode = make_encoder(norms, precision)

        def forward(images: torch.Tensor) -> torch.Tensor:
            features = torch.from_numpy(encode(images))
            if len(images) == 32 and marked(images):
                features[at % 32, 3] = bad
            return features

        return Encoder(forward, encode.fingerprint, encode.dim)

    source = Pictures.make(200)
    source.images[at] = 255

    def marked(images: torch.Tensor) -> bool:
        return bool((images[at % 32] == 255).all())

    vlm.encoder = overflowing
    first = at // 32 * 32
    with pytest.raises(InputError) as caught:
        run_images(tmp_path, source, task=task, checkpoint_every_batches=1)
    assert f"samples {first} to {first + 31}" in str(caught.value)
    assert f"'{at:04d}.png'" in str(caught.value)
    vlm.encoder = make_encoder
    assert run_images(tmp_path, source, task=task, resume=True).samples == 200


def test_progress_tells_places_read(tmp_path):
    from ttgcd.engines.folder import run_to_folder

    told: list[tuple[str, int, int]] = []
    run_to_folder(
        Pact(warmup=20),
        embedding_task(),
        embedding_stream(embeddings(80)),
        tmp_path,
        {},
        progress=lambda *what: told.append(what),
    )
    assert told == [("stream", 32, 80), ("stream", 64, 80), ("stream", 80, 80)]


def test_no_readable_sample_is_an_error_with_the_reasons_at_hand(tmp_path):
    source = Pictures.make(3, broken=("0000.png", "0001.png", "0002.png"))
    with pytest.raises(InputError, match="no readable sample"):
        run_images(tmp_path, source)
    assert (tmp_path / "rejected.csv").read_text().count("says the test") == 3
