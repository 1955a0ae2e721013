"""Stage one of PACT as a part of its own: its settings, and how far it has come on one stream."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.methods.optimiser_state import PREFIX, optimiser_arrays
from ttgcd.storage.state import State

if TYPE_CHECKING:
    import torch

    from ttgcd.methods.base import Caller, Task
    from ttgcd.methods.realign import Normaliser, Optimiser

#: A re-alignment that will take longer than this is announced.
LONG_SECONDS = 60.0
_NORM = "norm/"


@dataclass(kw_only=True)
class Realignment:
    """Re-alignment of the image tower's LayerNorms on a buffer (Eq. 3); the defaults are the
    paper's (Table 9).

    Parameters
    ----------
    warmup
        W, the number of samples in the buffer.
    epochs, lr, optimiser, realign_batch_size
        How it is trained; 0 epochs leave the encoder as it is.
    normaliser
        What a minibatch's loss is divided by: the mean weight of the buffer, so that its
        expectation is Eq. 3, or its own ("minibatch"). The paper does not say.
    realign_depth
        Above 0, only the last so many blocks of the image tower are re-aligned: what they read is
        computed once, so an epoch costs a fraction.
    early_stop
        Above 0, re-alignment ends when an epoch lowers the loss by less than this share of it.
    """

    warmup: int = 1024
    epochs: int = 30
    lr: float = 1e-2
    optimiser: Optimiser = "sgd"
    realign_batch_size: int = 128
    normaliser: Normaliser = "buffer"
    realign_depth: int = 0
    early_stop: float = 0.0

    def __post_init__(self) -> None:
        for field, least in (("warmup", 2), ("realign_batch_size", 1)):
            if getattr(self, field) < least:
                raise InputError(f"{field} must be {least} or more, got {getattr(self, field)}")
        for field in ("epochs", "realign_depth", "lr", "early_stop"):
            if not getattr(self, field) >= 0:
                raise InputError(f"{field} must be 0 or more, got {getattr(self, field)}")
        check_choice("optimiser", self.optimiser, ("sgd", "momentum", "adam", "adamw"))
        check_choice("normaliser", self.normaliser, ("buffer", "minibatch"))

    @classmethod
    def of(cls, given: bool | Mapping[str, Any] | Realignment) -> Realignment | None:
        """``True`` for the paper's settings, a mapping for others; None for ``False``."""
        if isinstance(given, Realignment):
            return given
        if isinstance(given, bool):
            return cls() if given else None
        if not isinstance(given, Mapping):
            raise InputError(
                "realign must be True, False or options of the re-alignment, as in "
                f"realign={{'epochs': 10}}, got {given!r}"
            )
        options = [field.name for field in fields(cls)]
        for name in given:
            if name not in options:
                raise InputError(
                    f"the re-alignment has no option {name!r}: it has {', '.join(options)}"
                )
        return cls(**given)

    def options(self) -> dict[str, Any]:
        """The settings as JSON."""
        return asdict(self)


def check_choice(field: str, given: object, allowed: tuple[str, ...]) -> None:
    """An InputError that names what may be given."""
    if given not in allowed:
        raise InputError(f"{field} must be one of {', '.join(allowed)}, got {given!r}")


class StageOne:
    """The re-alignment of one stream: a stopped one goes on behind its last whole epoch.

    Attributes
    ----------
    norms
        The LayerNorm parameters so far; None as long as they are the pretrained ones.
    losses
        Mean loss of every epoch so far.
    optimiser
        The optimiser's memory, as plain arrays.
    """

    def __init__(self, settings: Realignment) -> None:
        self.settings = settings
        self.norms: Mapping[str, np.ndarray] | None = None
        self.losses: list[float] = []
        self.optimiser: dict[str, np.ndarray] = {}
        self._epochs_done = 0

    def run(
        self,
        task: Task,
        caller: Caller,
        images: torch.Tensor,
        labels: np.ndarray,
        margins: np.ndarray,
        after_epoch: Callable[[], None],
        instead: str,
    ) -> None:
        """Minimise Eq. 3; pseudo-labels and margins (Eq. 1-2) stay those of the pretrained encoder.

        ``instead`` says how to do without, for the note that a long re-alignment begins with.
        """
        # Not at the top of the file: settings are read and checked without torch.
        from ttgcd.methods.realign import Realigned, converged, realign, realign_key

        options = self.settings
        if margins.sum() <= 0:
            warnings.warn(
                "no sample of the buffer has a confident text label: re-alignment is skipped",
                stacklevel=2,
            )
            return
        vlm = task.vlm
        assert vlm is not None
        model = vlm.trainable()
        if self.norms is not None:  # of an interrupted re-alignment
            model.load_norms(self.norms)

        def epoch_done(epoch: int, loss: float, optimiser: torch.optim.Optimizer) -> bool:
            self.losses.append(loss)
            self._epochs_done = epoch + 1
            self.norms = model.norm_arrays()
            self.optimiser = optimiser_arrays(optimiser)
            caller.progress("re-align", epoch + 1, options.epochs)
            after_epoch()
            return converged(self.losses, options.early_stop)

        def forecast(seconds: float) -> None:
            if seconds > LONG_SECONDS:
                caller.say(
                    f"re-aligning the encoder on {len(images):,} images, up to {options.epochs} "
                    f"epochs, takes about {_duration(seconds)} on this machine; {instead}, "
                    "`realign_depth=1` trains the last block alone, `early_stop=0.01` ends "
                    "it when the loss has settled"
                )

        settings: dict[str, Any] = {
            "logit_scale": task.logit_scale,
            "epochs": options.epochs,
            "lr": options.lr,
            "batch_size": options.realign_batch_size,
            "optimiser": options.optimiser,
            "normaliser": options.normaliser,
            "seed": task.seed,
            "depth": options.realign_depth,
        }
        store = caller.realigned if self._epochs_done == 0 else None
        key = ""
        if store is not None:
            stop = {"early_stop": options.early_stop}
            key = realign_key(vlm, images, task.anchors, labels, margins, **settings, **stop)
            if (done := store.get(key)) is not None:
                self.norms, self.losses = done.norms, list(done.losses)
                self._epochs_done = options.epochs
                return
        trained = self._epochs_done >= options.epochs
        if trained or converged(self.losses, options.early_stop):
            return  # interrupted right behind its last epoch
        began = time.perf_counter()
        realign(
            model,
            images,
            task.anchors,
            labels,
            margins,
            **settings,
            first_epoch=self._epochs_done,
            optimiser_state=self.optimiser,
            after_epoch=epoch_done,
            forecast=forecast,
        )
        if store is not None:
            seconds = time.perf_counter() - began
            store[key] = Realigned(model.norm_arrays(), list(self.losses), seconds)

    # -- memory -------------------------------------------------------------------------------

    def state(self) -> State:
        """Norms and optimiser, epochs and losses."""
        norms = {} if self.norms is None else self.norms
        arrays = {_NORM + key: array for key, array in norms.items()} | self.optimiser
        return State(arrays, {"epochs_done": self._epochs_done, "losses": list(self.losses)})

    def load(self, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> None:
        """Go on from ``state``; other arrays and values are passed over."""
        self._epochs_done = values["epochs_done"]
        self.losses = list(values["losses"])
        self.optimiser = {key: array for key, array in arrays.items() if key.startswith(PREFIX)}
        norms = {
            key.removeprefix(_NORM): array for key, array in arrays.items() if key.startswith(_NORM)
        }
        self.norms = norms or None


def _duration(seconds: float) -> str:
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
