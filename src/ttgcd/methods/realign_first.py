"""Stage one of PACT in front of another method: the encoder is re-aligned once, then it begins.

The first W images are gathered, the encoder is trained on them (Eq. 3), and the method sees them
encoded again, batch by batch as they came, and all that follows: exactly what it would answer on
a stream of that encoder from the start. While the buffer fills nothing is answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.answer import Answer, Category
from ttgcd.methods.base import Method, Task, features_of
from ttgcd.methods.buffered import packed, unpacked
from ttgcd.methods.stage_one import Realignment, StageOne
from ttgcd.methods.zero_shot import text_says
from ttgcd.storage.state import State

if TYPE_CHECKING:
    from ttgcd.streams.base import Batch
    from ttgcd.vlm.base import VLM

#: What is the stage's among the arrays and values of the state; the rest is the method's.
_OWN = "realign"


class RealignFirst(Method):
    """``method`` on a re-aligned encoder; name, answers and options are the method's own.

    Parameters
    ----------
    method
        One that leaves the encoder as it is.
    settings
        Of the re-alignment.
    """

    trains = "image LayerNorm"

    def __init__(self, method: Method, settings: Realignment) -> None:
        if method.trains != "nothing":
            raise InputError(
                f"{method.name} trains the encoder itself ({method.trains}): leave out "
                "`realign=...`, which goes with methods that work on features (scout, kmeans, ...)"
            )
        self.method, self.settings = method, settings

    # The facts about the method behind, where the contract asks for them.

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.method.name

    @property
    def answers(self) -> Literal["arrival", "end"]:  # type: ignore[override]
        return self.method.answers

    @property
    def passes(self) -> int:  # type: ignore[override]
        return self.method.passes

    @property
    def behind(self) -> Method:
        return self.method.behind

    @property
    def seen(self) -> int:  # type: ignore[override]
        return self.method.seen + sum(map(len, self._buffer))

    @property
    def novel(self) -> int | None:  # type: ignore[override]
        return self.method.novel

    @property
    def n_novel(self) -> int:
        return self.method.n_novel

    @property
    def warmup(self) -> int:
        """Samples that are gathered, here or there, before there is an answer."""
        return max(self.settings.warmup, getattr(self.method, "warmup", 0))

    @property
    def begun(self) -> bool:
        """Whether answers are by what was learned."""
        return self._over and bool(getattr(self.method, "begun", True))

    # -- the stream ---------------------------------------------------------------------------

    def start(self, task: Task) -> None:
        check_encoder(self, task.vlm)
        self.check_names(task.known)
        self.task = task
        self.method.caller = self.caller
        self.method.start(task)
        self._over = False
        self._buffer: list[Batch] = []
        self._stage = StageOne(self.settings)

    def check_names(self, known: Sequence[str], called: str | None = None) -> None:
        if not known:
            raise InputError(
                "re-alignment learns from the known names: give them as `known=cat,dog`, or leave "
                "out `realign=...`"
            )

    def observe(self, batch: Batch) -> Answer:
        if self._over:
            return self.method.observe(batch)
        if batch.images is None:
            raise InputError("re-alignment trains the encoder on images, this batch is embeddings")
        self._buffer.append(batch)
        return self._begin() if self.seen >= self.settings.warmup else Answer.empty()

    def finish(self) -> Answer:
        if self._over or not self._buffer:
            return self.method.finish()
        return Answer.concat([self._begin(), self.method.finish()])

    def predict(self, batch: Batch) -> Answer:
        return self.method.predict(batch)

    def revise(self, start: int, features: np.ndarray) -> Answer:
        return self.method.revise(start, features)

    def _begin(self) -> Answer:
        """Re-align on the first W images; let the method see the whole buffer."""
        import torch

        size = self.settings.warmup
        images = torch.cat([batch.images for batch in self._buffer if batch.images is not None])
        features = np.concatenate([features_of(batch) for batch in self._buffer])
        if self.settings.epochs:
            labels, margins = text_says(self.task, features[:size])
            self._stage.run(
                self.task,
                self.caller,
                images[:size],
                labels,
                margins,
                after_epoch=lambda: self.caller.checkpoint(self.state_dict()),
                instead="without `realign=True` the encoder stays as it is",
            )
        buffer, self._buffer, self._over = self._buffer, [], True
        self._stage.optimiser = {}
        if self._stage.norms is not None:
            self._hand_over_encoder()
            encode = self.task.encoder(self._stage.norms)
            buffer = [replace(batch, features=encode(_images(batch))) for batch in buffer]
            features = np.concatenate([features_of(batch) for batch in buffer])
        wanted = self.method.wants_images
        seen = [batch if wanted else replace(batch, images=None) for batch in buffer]
        answer = Answer.concat([self.method.observe(batch) for batch in seen])
        rows = features[answer.index - buffer[0].start]
        return replace(answer, norms=self._stage.norms, features=rows)

    def _hand_over_encoder(self) -> None:
        """From here on the task's encoder is the re-aligned one, for a method that asks for it."""
        self.method.task = replace(self.task, norms=self._stage.norms)

    # -- what it wants ------------------------------------------------------------------------

    @property
    def wants_features(self) -> bool:
        return self.method.wants_features if self._over else True

    @property
    def wants_images(self) -> bool:
        return self.method.wants_images if self._over else True

    @property
    def wants_count(self) -> bool:
        return self.method.wants_count

    @property
    def counts_on(self) -> int:
        """L is estimated from the pretrained features of the buffer, as PACT's is (Sec. 5.3)."""
        return self.settings.warmup

    def settle(self, novel: int) -> None:
        self.method.settle(novel)

    def promote(self, named: Mapping[int, np.ndarray]) -> bool:
        return self.method.promote(named)

    def norms(self) -> Mapping[str, np.ndarray] | None:
        return self._stage.norms if self._over else None

    # -- what it found ------------------------------------------------------------------------

    def prototypes(self) -> np.ndarray | None:
        return self.method.prototypes()

    def categories(self) -> list[Category]:
        return self.method.categories()

    def health(self) -> dict[str, Any]:
        """The method's, and the mean loss of every epoch of the re-alignment."""
        losses = [float(loss) for loss in self._stage.losses]
        return {**self.method.health(), "warmed_up": self.begun, "realign_losses": losses}

    # -- what it remembers --------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        return {**self.method.config(), _OWN: self.settings.options()}

    def state_dict(self) -> State:
        """The method's state, with the stage's beside it. While the buffer fills, ``seen`` is 0
        and the stream is read again from its start; for a caller who cannot do that the buffer is
        part of the state."""
        state, stage = self.method.state_dict(), self._stage.state()
        own, seen = dict(stage.arrays), state.values["seen"]
        over = self._over and seen == self.seen  # else the method, too, begins again
        if not self._over and not self.caller.replays:
            own |= packed(self._buffer)
            seen = self.seen
        return State(
            {**state.arrays, **{f"{_OWN}/{key}": array for key, array in own.items()}},
            {
                **state.values,
                "seen": seen,
                "config": self.config(),
                _OWN: {**stage.values, "over": over},
            },
        )

    def load_state_dict(self, state: State) -> None:
        config = dict(state.values["config"])
        if config.pop(_OWN, None) != self.settings.options():
            raise InputError(
                "the saved state was made with another configuration of the re-alignment: "
                "start again, or give the options it was made with"
            )
        own = {
            key.removeprefix(f"{_OWN}/"): np.array(array)
            for key, array in state.arrays.items()
            if key.startswith(f"{_OWN}/")
        }
        values = state.values[_OWN]
        self._over = values["over"]
        self._stage.load(own, values)
        self._buffer = [] if self._over else unpacked(own)
        if self._over and self._stage.norms is not None:
            self._hand_over_encoder()
        seen = state.values["seen"] if self._over else 0
        arrays = {
            key: array for key, array in state.arrays.items() if not key.startswith(f"{_OWN}/")
        }
        self.method.load_state_dict(State(arrays, {**state.values, "config": config, "seen": seen}))


def check_encoder(method: Method, vlm: VLM | None) -> None:
    """An InputError where there is nothing that could be re-aligned before ``method``."""
    if isinstance(method, RealignFirst) and vlm is None:
        raise InputError(
            "the source holds embeddings: there is no encoder to re-align. Leave out "
            "`realign=...`, or give the images and their model"
        )


def _images(batch: Batch) -> Any:
    assert batch.images is not None
    return batch.images
