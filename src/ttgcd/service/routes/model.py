"""The model itself: embeddings in OpenAI's shape, and what can be asked of it."""

from __future__ import annotations

import base64

import numpy as np
import torch
from fastapi import APIRouter

from ttgcd.service.errors import Invalid, TooLarge
from ttgcd.service.house import House
from ttgcd.service.intake import Sent, data_uri, opened
from ttgcd.service.limits import Limits
from ttgcd.service.routes import ERRORS
from ttgcd.service.schemas import Embedding, EmbeddingRequest, Embeddings, Model, Models

_LONGEST_TEXT = 8192


def router(house: House, limits: Limits) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["model"], responses=ERRORS)

    @routes.get("/models")
    def models() -> Models:
        vlm = house.vlm
        model = Model(id=house.model, dimensions=vlm.dim, fingerprint=vlm.fingerprint)
        return Models(data=[model])

    @routes.post("/embeddings")
    def embeddings(wanted: EmbeddingRequest) -> Embeddings:
        if wanted.model not in (None, "", house.model):
            raise Invalid(f"this service has the model {house.model!r} only")
        inputs = [wanted.input] if isinstance(wanted.input, str) else wanted.input
        rows = np.zeros((len(inputs), house.vlm.dim), np.float32)
        is_image = np.array([text.startswith("data:") for text in inputs], bool)
        if is_image.any():
            given = [text for text, image in zip(inputs, is_image) if image]
            rows[is_image] = _images(house, given, limits)
        if not is_image.all():
            given = [text for text, image in zip(inputs, is_image) if not image]
            if max(map(len, given)) > _LONGEST_TEXT:
                raise TooLarge(f"a text has at most {_LONGEST_TEXT} characters")
            with torch.inference_mode():
                rows[~is_image] = house.vlm.encode_texts(given).cpu().numpy()
        return Embeddings(
            model=house.model,
            data=[
                Embedding(index=i, embedding=_spelled(row, wanted.encoding_format))
                for i, row in enumerate(rows)
            ],
        )

    return routes


def _images(house: House, uris: list[str], limits: Limits) -> np.ndarray:
    sent = opened([Sent("", data_uri(uri)) for uri in uris], house.vlm.preprocess, limits)
    for image in sent:
        if image.problem is not None:
            raise image.problem
    pixels = [image.entry.pixels for image in sent if image.entry is not None]
    return house.vlm.encoder()(torch.stack(pixels))


def _spelled(row: np.ndarray, encoding: str) -> list[float] | str:
    if encoding == "base64":
        return base64.b64encode(row.astype("<f4").tobytes()).decode()
    return [float(value) for value in row]
