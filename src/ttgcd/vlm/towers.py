"""The two transformers of CLIP and SigLIP in plain torch, under the names their checkpoints use.

The same computation, operation for operation, as transformers' ``CLIPModel`` and ``SiglipModel``
(the tests compare the two), but for tokens that nobody reads. Written out here because importing
those takes longer than many a run, because the image tower must be cut in two (what lies below the
trained blocks is computed once), and because a tower without gradients can work in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from ttgcd.errors import InputError
from ttgcd.vlm.stem import build_stem


def quick_gelu(x: torch.Tensor) -> torch.Tensor:
    """x * sigmoid(1.702 x), OpenAI's stand-in for the Gaussian error linear unit."""
    gate = 1.702 * x
    if torch.is_grad_enabled():
        return x * torch.sigmoid(gate)
    return gate.sigmoid_().mul_(x)  # the widest array of a block: one copy of it, not three


_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "quick_gelu": quick_gelu,
    "gelu": F.gelu,
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


@dataclass(frozen=True)
class Shape:
    """Size of one transformer."""

    width: int
    inner: int
    layers: int
    heads: int
    activation: str
    epsilon: float

    def __post_init__(self) -> None:
        if self.activation not in _ACTIVATIONS:
            raise InputError(
                f"config.json: hidden_act {self.activation!r} is not supported; "
                f"known: {', '.join(_ACTIVATIONS)}"
            )
        if min(self.width, self.inner, self.layers, self.heads) < 1 or self.width % self.heads:
            raise InputError(
                f"config.json: {self.heads} attention heads do not divide a width of {self.width}"
            )


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(shape.width, shape.width) for _ in range(4)
        )

    def forward(self, x: torch.Tensor, causal: bool, asking: int | None) -> torch.Tensor:
        batch, _, width = x.shape
        q, k, v = (
            part(read).view(batch, -1, self.heads, width // self.heads).transpose(1, 2)
            for part, read in (
                (self.q_proj, x[:, :asking]),
                (self.k_proj, x),
                (self.v_proj, x),
            )
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.out_proj(mixed.transpose(1, 2).reshape(batch, -1, width))


class FeedForward(nn.Module):
    """Two linear layers with an activation between them, on every token by itself."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.fc1 = nn.Linear(shape.width, shape.inner)
        self.fc2 = nn.Linear(shape.inner, shape.width)
        self.activation = _ACTIVATIONS[shape.activation]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.activation(self.fc1(x)))


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)); of the first ``asking`` tokens if so many
    are all that is read behind it."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.layer_norm1 = nn.LayerNorm(shape.width, eps=shape.epsilon)
        self.self_attn = Attention(shape)
        self.layer_norm2 = nn.LayerNorm(shape.width, eps=shape.epsilon)
        self.mlp = FeedForward(shape)

    def forward(
        self, x: torch.Tensor, causal: bool = False, asking: int | None = None
    ) -> torch.Tensor:
        x = x[:, :asking] + self.self_attn(self.layer_norm1(x), causal, asking)
        return x + self.mlp(self.layer_norm2(x))


class Blocks(nn.Module):
    """The stack of blocks; exists because checkpoints say ``encoder.layers.3``."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.layers))


def _embedding(count: int, width: int) -> nn.Embedding:
    """Without the random start that nobody reads: drawing it without memory imports a compiler."""
    return nn.Embedding(count, width, _weight=torch.empty(count, width))


class PatchEmbeddings(nn.Module):
    """Pixels to tokens: a strided convolution (or a stem), CLIP's class token, positions."""

    def __init__(
        self,
        width: int,
        image: int,
        patch: int,
        *,
        clip: bool,
        stem: Mapping[str, object] | None,
    ) -> None:
        super().__init__()
        if clip:
            self.class_embedding = nn.Parameter(torch.empty(width))
        self.patch_embedding: nn.Module = (
            build_stem(stem) if stem else nn.Conv2d(3, width, patch, stride=patch, bias=not clip)
        )
        self.position_embedding = _embedding((image // patch) ** 2 + clip, width)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        tokens = self.patch_embedding(pixels).flatten(2).transpose(1, 2)
        if hasattr(self, "class_embedding"):
            first = self.class_embedding.expand(len(tokens), 1, -1)
            tokens = torch.cat([first, tokens], dim=1)
        return tokens + self.position_embedding.weight


class AttentionPool(nn.Module):
    """SigLIP's pooling: one learned question to all tokens, then a residual feed-forward."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.probe = nn.Parameter(torch.empty(1, 1, shape.width))
        self.attention = nn.MultiheadAttention(shape.width, shape.heads, batch_first=True)
        self.layernorm = nn.LayerNorm(shape.width, eps=shape.epsilon)
        self.mlp = FeedForward(shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = self.attention(self.probe.expand(len(x), 1, -1), x, x, need_weights=False)[0]
        return (pooled + self.mlp(self.layernorm(pooled)))[:, 0]


class ImageTower(nn.Module):
    """Normalised pixels to features, in three steps that may be taken one by one."""

    def __init__(
        self,
        shape: Shape,
        image: int,
        patch: int,
        *,
        clip: bool,
        stem: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__()
        self.embeddings = PatchEmbeddings(shape.width, image, patch, clip=clip, stem=stem)
        if clip:
            self.pre_layrnorm = nn.LayerNorm(shape.width, eps=shape.epsilon)
        self.encoder = Blocks(shape)
        self.post_layernorm = nn.LayerNorm(shape.width, eps=shape.epsilon)
        if not clip:
            self.head = AttentionPool(shape)

    @property
    def depth(self) -> int:
        return len(self.encoder.layers)

    def embed(self, pixels: torch.Tensor) -> torch.Tensor:
        """What the first LayerNorm reads."""
        return self.embeddings(pixels)

    def run(self, tokens: torch.Tensor, begin: int, end: int) -> torch.Tensor:
        """Tokens through blocks ``begin`` to ``end``; CLIP's first norm goes with block 0.

        Behind CLIP's last block the class token alone is read, and no other is worked out.
        """
        clip = hasattr(self, "pre_layrnorm")
        if begin == 0 and end > 0 and clip:
            tokens = self.pre_layrnorm(tokens)
        for place in range(begin, end):
            asking = 1 if clip and place == self.depth - 1 else None
            tokens = self.encoder.layers[place](tokens, asking=asking)
        return tokens

    def pool(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens behind the last block to one vector an image."""
        if hasattr(self, "head"):
            return self.head(self.post_layernorm(tokens))
        return self.post_layernorm(tokens[:, 0])

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.pool(self.run(self.embed(pixels), 0, self.depth))


class TokenEmbeddings(nn.Module):
    """Token ids to vectors, with positions."""

    def __init__(self, width: int, vocabulary: int, length: int) -> None:
        super().__init__()
        self.token_embedding = _embedding(vocabulary, width)
        self.position_embedding = _embedding(length, width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.token_embedding(ids) + self.position_embedding.weight[: ids.shape[1]]


class TextTower(nn.Module):
    """Token ids to features.

    CLIP's attention is causal and the vector is read at the end token: what stands behind it, the
    padding, is never looked at. SigLIP's looks both ways and reads the last place.
    """

    def __init__(
        self,
        shape: Shape,
        vocabulary: int,
        length: int,
        *,
        end: int | None,
        projection: int | None = None,
    ) -> None:
        super().__init__()
        self.embeddings = TokenEmbeddings(shape.width, vocabulary, length)
        self.encoder = Blocks(shape)
        self.final_layer_norm = nn.LayerNorm(shape.width, eps=shape.epsilon)
        if projection is not None:
            self.head = nn.Linear(shape.width, projection)
        self.end = end

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        tokens = self.embeddings(ids)
        for block in self.encoder.layers:
            tokens = block(tokens, self.end is not None)
        tokens = self.final_layer_norm(tokens)
        if self.end is None:
            return self.head(tokens[:, -1])
        # Configs of OpenAI's time say 2 and mean the highest id, which is the end token's.
        place = ids.argmax(dim=1) if self.end == 2 else (ids == self.end).int().argmax(dim=1)
        return tokens[torch.arange(len(ids), device=ids.device), place]


class DualEncoder(nn.Module):
    """Both towers, CLIP's projections, the temperature."""

    def __init__(self, image: ImageTower, text: TextTower, widths: tuple[int, int, int]) -> None:
        super().__init__()
        self.logit_scale = nn.Parameter(torch.empty(()))
        self.vision_model = image
        self.text_model = text
        image_width, text_width, dim = widths
        if text.end is not None:  # CLIP; SigLIP's towers end in the common space
            self.visual_projection = nn.Linear(image_width, dim, bias=False)
            self.text_projection = nn.Linear(text_width, dim, bias=False)

    def project(self, pooled: torch.Tensor) -> torch.Tensor:
        """Image vectors into the common space."""
        return self.visual_projection(pooled) if hasattr(self, "visual_projection") else pooled

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.project(self.vision_model(pixels))

    def text_features(self, ids: torch.Tensor) -> torch.Tensor:
        pooled = self.text_model(ids)
        return self.text_projection(pooled) if hasattr(self, "text_projection") else pooled
