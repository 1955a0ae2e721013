"""Image formats: what is read here, and what to do about the others.

Only the formats listed are ever opened. Which of them Pillow can decode depends on how it was
built (AVIF) and on what is installed beside it (HEIC through ``pillow-heif``, the extra ``heic``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from PIL import features

from ttgcd.wording import by_extension

_ALWAYS = {
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "PNG": (".png",),
    "GIF": (".gif",),
    "WEBP": (".webp",),
    "TIFF": (".tif", ".tiff"),
    "BMP": (".bmp", ".dib"),
}
_AVIF = (".avif",)
_HEIC = (".heic", ".heif", ".hif")
_RAW = (
    *(".3fr", ".arw", ".cr2", ".cr3", ".dng", ".erf", ".kdc", ".mrw", ".nef", ".nrw", ".orf"),
    *(".pef", ".raf", ".raw", ".rw2", ".sr2", ".srf", ".srw", ".x3f"),
)
_OTHERS = (".exr", ".ico", ".jp2", ".jxl", ".psd", ".svg", ".tga", ".xcf")


def _heif_registered() -> bool:
    try:
        import pillow_heif
    except ImportError:
        return False
    pillow_heif.register_heif_opener()
    return True


HAS_AVIF = bool(features.check("avif"))
HAS_HEIC = _heif_registered()

#: names of the formats in Pillow
FORMATS = (*_ALWAYS, *(("AVIF",) if HAS_AVIF else ()), *(("HEIF",) if HAS_HEIC else ()))
#: file endings of what can be read
EXTENSIONS = frozenset(
    (
        *(extension for extensions in _ALWAYS.values() for extension in extensions),
        *(_AVIF if HAS_AVIF else ()),
        *(_HEIC if HAS_HEIC else ()),
    )
)
#: file endings of images that cannot be read here, and what to do about them
UNREAD: dict[str, str] = {
    **{
        extension: "a camera's raw file: export it as JPEG or TIFF, or use the JPEG beside it"
        for extension in _RAW
    },
    **dict.fromkeys(_OTHERS, "not a format that is read here: export it as JPEG or PNG"),
    **(
        {} if HAS_AVIF else dict.fromkeys(_AVIF, "AVIF needs a newer Pillow: pip install -U pillow")
    ),
    **({} if HAS_HEIC else dict.fromkeys(_HEIC, "HEIC needs pip install 'ttgcd[heic]'")),
}


def unknown_format(data: bytes) -> str:
    """Why bytes that Pillow did not recognise cannot be read, as far as their head tells."""
    if data[4:8] == b"ftyp":  # the container of HEIC and AVIF names its kind in the next bytes
        brand = data[8:12]
        if brand in (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1"):
            return UNREAD.get(".heic", "damaged HEIC file")
        if brand in (b"avif", b"avis"):
            return UNREAD.get(".avif", "damaged AVIF file")
    return "not an image of a supported format"


def extension_of(path: str) -> str:
    """The ending of a file name in small letters, with its dot."""
    return os.path.splitext(path)[1].lower()


def unread_note(extensions: Iterable[str]) -> str:
    """One line about images that were set aside because of their format."""
    all_of_them = list(extensions)
    reasons = dict.fromkeys(
        f"{', '.join(sorted(e for e in set(all_of_them) if UNREAD[e] == why))}: {why}"
        for why in sorted({UNREAD[extension] for extension in all_of_them})
    )
    return f"not readable here: {by_extension(all_of_them)} ({'; '.join(reasons)})"
