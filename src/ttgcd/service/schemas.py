"""What goes over the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
ImageId = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Index = Annotated[int, Field(ge=0, le=2**53)]
Kind = Literal["known", "novel"]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Error(BaseModel):
    """Every answer that is not a success."""

    error: str
    error_type: str


# -- streams --------------------------------------------------------------------------------------


class NewStream(Strict):
    """A stream to create. What is left out has the defaults of ``ttgcd discover``: without
    ``known`` everything is grouped."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
    known: Annotated[list[Name], Field(max_length=10_000)] = []
    novel: Annotated[int, Field(ge=0, le=10_000)] | Literal["auto"] = "auto"
    method: Annotated[str, StringConstraints(max_length=64)] | None = None
    preset: Annotated[str, StringConstraints(max_length=64)] | None = None
    warmup: Annotated[int, Field(ge=2, le=100_000)] | None = None
    epochs: Annotated[int, Field(ge=0, le=1000)] | None = None
    batch_size: Annotated[int, Field(ge=1, le=1024)] = 128
    seed: Annotated[int, Field(ge=0, le=2**31)] = 0
    vocabulary: Annotated[list[Name], Field(max_length=20_000)] | None = None

    def settings(self) -> dict[str, Any]:
        """As keyword arguments of ``Settings``."""
        given = self.model_dump(exclude={"name", "warmup", "epochs"}, exclude_none=True)
        changes = {"warmup": self.warmup, "epochs": self.epochs}
        return {**given, "changes": {k: v for k, v in changes.items() if v is not None}}


class StreamPatch(Strict):
    paused: bool


class Progress(BaseModel):
    phase: str
    done: int
    total: int


class StreamInfo(BaseModel):
    name: str
    paused: bool
    images: int
    learned: int
    finished: int
    waiting: int
    warmup: int | None
    warmed_up: bool
    progress: Progress | None
    failed: str | None
    known: int
    novel: int
    edits: int
    method: str
    batch_size: int
    seed: int
    bytes: int
    cursor: int


class Streams(BaseModel):
    streams: list[StreamInfo]


# -- images ---------------------------------------------------------------------------------------


class SentImage(Strict):
    """``data`` is a data URI: ``data:image/jpeg;base64,...``."""

    id: ImageId | None = None
    data: Annotated[str, StringConstraints(min_length=1)]


class SentImages(Strict):
    images: Annotated[list[SentImage], Field(min_length=1, max_length=512)]


class Row(BaseModel):
    """An image and its answer. While ``provisional`` it may still be revised by the method;
    ``confidence`` is how likely it is right, 0 to 1, and follows the stream as it grows."""

    index: int
    id: str
    category: int
    kind: Kind
    name: str
    score: float
    confidence: float
    provisional: bool
    revised: bool


class Result(BaseModel):
    """The answer to one image sent; ``error`` instead of it when it was refused."""

    id: str
    index: int | None = None
    duplicate: bool = False
    answer: Row | None = None
    error: str | None = None
    error_type: str | None = None


class Results(BaseModel):
    results: list[Result]


class Rows(BaseModel):
    total: int
    images: list[Row]


class Changes(BaseModel):
    """Rows that changed after a cursor, oldest change first; ``more`` says to ask again."""

    cursor: int
    more: bool
    changes: list[Row]


class Query(Strict):
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
    limit: Annotated[int, Field(ge=1, le=500)] = 60


class Found(BaseModel):
    similarity: float
    image: Row


class SearchResults(BaseModel):
    results: list[Found]


# -- categories and edits -------------------------------------------------------------------------


class CategoryInfo(BaseModel):
    id: int
    kind: Kind
    name: str
    count: int
    named: bool = False
    hidden: bool = False
    merged_into: int | None = None
    split_from: int | None = None
    born_at: int | None = None
    suggested_names: list[str]
    good_name: str | None = None
    exemplars: list[int]


class Categories(BaseModel):
    """``cursor`` is the stream's at the moment that is shown: while the stream's own is higher,
    there is something newer to see."""

    categories: list[CategoryInfo]
    cursor: int


class CategoryPatch(Strict):
    """``name`` renames; ``hidden`` hides (undo shows it again); ``known`` says which known class
    it is."""

    name: Name | None = None
    hidden: Literal[True] | None = None
    known: Index | None = None


class NewEdit(Strict):
    """One edit of ``ttgcd edit``. A split without images is made in two by looks; undo and redo
    without a target take the last one."""

    op: Literal["rename", "merge", "split", "move", "hide", "mark", "undo", "redo"]
    category: Index | None = None
    into: Index | None = None
    name: Name | None = None
    images: Annotated[list[Index], Field(max_length=100_000)] | None = None
    target: Annotated[int, Field(ge=1, le=2**31)] | None = None


class EditInfo(BaseModel):
    number: int
    op: str
    text: str
    when: str
    who: str
    in_force: bool
    problem: str | None = None


class Edits(BaseModel):
    edits: list[EditInfo]


class QuestionInfo(BaseModel):
    """Something a look decides; see ``ttgcd.prototypes.questions``."""

    ask: Literal["same", "mixed", "border"]
    categories: list[int]
    image: Row | None
    gain: float


class Questions(BaseModel):
    questions: list[QuestionInfo]


# -- figures --------------------------------------------------------------------------------------


class Step(BaseModel):
    start: int
    known: int
    novel: int


class Stats(BaseModel):
    """``rate`` (images a second) and ``queue_over_time`` (the most that waited) have a value for
    every ``rate_seconds``, oldest first."""

    images: int
    known: int
    novel: int
    doubtful: int
    queue: int
    queue_over_time: list[int]
    timeline: list[Step]
    rate: list[float]
    rate_seconds: float


class MapPoint(BaseModel):
    index: int
    x: float
    y: float
    category: int


class Map(BaseModel):
    projection: str
    points: list[MapPoint]


# -- the model ------------------------------------------------------------------------------------


class EmbeddingRequest(BaseModel):
    """As OpenAI's: ``input`` is a text, an image as a data URI, or a list of such."""

    input: (
        Annotated[str, StringConstraints(min_length=1)]
        | Annotated[
            list[Annotated[str, StringConstraints(min_length=1)]],
            Field(min_length=1, max_length=256),
        ]
    )
    model: str | None = None
    encoding_format: Literal["float", "base64"] = "float"


class Embedding(BaseModel):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    prompt_tokens: int = 0
    total_tokens: int = 0


class Embeddings(BaseModel):
    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: Usage = Usage()


class Model(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "ttgcd"
    dimensions: int
    fingerprint: str


class Models(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    version: str


class Token(Strict):
    token: Annotated[str, StringConstraints(max_length=1024)]
