"""Categories and what people change in them; everything goes through the edit log."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path

from ttgcd.discovery.edits.records import parse
from ttgcd.errors import InputError
from ttgcd.prototypes.questions import next_questions
from ttgcd.service.errors import Invalid, NotFound
from ttgcd.service.house import House
from ttgcd.service.live import LiveStream
from ttgcd.service.present import categories_of, edits_of, images_named, rows_of
from ttgcd.service.routes import ERRORS
from ttgcd.service.routes.streams import StreamName
from ttgcd.service.schemas import (
    Categories,
    CategoryPatch,
    Edits,
    NewEdit,
    QuestionInfo,
    Questions,
)

#: Questions are asked about the latest images at most.
_ASKED_ABOUT = 5000


def router(house: House) -> APIRouter:
    routes = APIRouter(prefix="/v1/streams/{stream}", tags=["categories"], responses=ERRORS)

    @routes.get("/categories")
    def categories(stream: StreamName) -> Categories:
        found = house.stream(stream)
        return categories_of(found, found.views.now())

    @routes.patch("/categories/{category}")
    def change_category(
        stream: StreamName, category: Annotated[int, Path(ge=0, le=2**31)], patch: CategoryPatch
    ) -> Categories:
        found = house.stream(stream)
        if category not in found.views.now().by_id:
            raise NotFound(f"no category {category} in this stream")
        said: list[dict[str, Any]] = []
        if patch.name is not None:
            said.append({"op": "rename", "category": category, "name": patch.name})
        if patch.hidden:
            said.append({"op": "hide", "category": category})
        if patch.known is not None:
            said.append({"op": "mark", "category": category, "into": patch.known})
        if not said:
            raise Invalid("nothing to change: give name, hidden or known")
        _edit(found, said)
        return categories_of(found, found.views.now())

    @routes.get("/edits")
    def edits(stream: StreamName) -> Edits:
        return edits_of(house.stream(stream).views.now())

    @routes.post("/edits", status_code=201)
    def make_edit(stream: StreamName, edit: NewEdit) -> Edits:
        found = house.stream(stream)
        if edit.op in ("undo", "redo"):
            take_back = found.views.undo if edit.op == "undo" else found.views.redo
            try:
                return edits_of(take_back(edit.target))
            except InputError as error:
                raise Invalid(str(error)) from None
        said = edit.model_dump(exclude_none=True)
        if edit.op == "split" and not edit.images and edit.category is not None:
            try:
                said["images"] = list(found.views.halves(edit.category))
            except InputError as error:
                raise Invalid(str(error)) from None
        else:
            said["images"] = images_named(found, edit.images) or []
        if not said["images"]:
            del said["images"]
        _edit(found, [said])
        return edits_of(found.views.now())

    @routes.get("/questions")
    def questions(stream: StreamName) -> Questions:
        """What a look would decide: categories that may be one, or two, and images between two."""
        return _questions(house.stream(stream))

    return routes


def _edit(stream: LiveStream, said: list[dict[str, Any]]) -> None:
    try:
        stream.views.edit(*[parse(record, "edit") for record in said])
    except InputError as error:
        raise Invalid(str(error)) from None


def _questions(stream: LiveStream) -> Questions:
    view = stream.views.now()
    file = stream.learner.features
    rows = len(view)
    if not rows or file.count < rows:
        return Questions(questions=[])
    first = max(0, rows - _ASKED_ABOUT)
    novel = [c["id"] for c in view.categories if c["kind"] == "novel"]
    shown = view.columns["shown"][first:]
    settled = view.columns["confidence"][first:] >= 1.0
    asked = next_questions(file.read(first, rows), shown, novel, settled=settled)
    found = []
    for question in asked:
        about = [] if question.row is None else rows_of(stream, view, [first + question.row])
        found.append(
            QuestionInfo(
                ask=question.ask,
                categories=[int(c) for c in question.categories],
                image=about[0] if about else None,
                gain=float(np.nan_to_num(question.gain)),
            )
        )
    return Questions(questions=found)
