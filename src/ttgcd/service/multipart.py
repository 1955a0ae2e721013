"""The files of a ``multipart/form-data`` body (RFC 7578), found by searching for its boundary.

A request may hold hundreds of small images. A parser that is told of every part piece by piece
takes longer for each of them than the model does; here the body is in memory and is cut.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from python_multipart.multipart import parse_options_header

from ttgcd.service.errors import Invalid, TooLarge

_LONGEST_HEADERS = 16 * 2**10
#: How nearly everybody writes the header: no escapes, name first.
_PLAIN = re.compile(
    rb'(?:^|\r\n)content-disposition: form-data; name="([^"\\\r\n]*)"; filename="([^"\\\r\n]*)"'
    rb"(?:\r\n|$)",
    re.IGNORECASE,
)
_ANY = re.compile(rb"(?:^|\r\n)content-disposition:[ \t]*([^\r\n]*)", re.IGNORECASE)


@dataclass(frozen=True)
class Part:
    """A file of a form: the field it stands in, its name, its bytes."""

    field: str
    filename: str
    data: bytes


def files_of(body: bytes, content_type: str, most: int) -> list[Part]:
    """The parts that have a file name, in their order; other fields are left out."""
    boundary = parse_options_header(content_type)[1].get(b"boundary", b"")
    if not 0 < len(boundary) <= 200:
        raise Invalid("the form cannot be read: its content type names no boundary")
    mark = b"--" + boundary
    at = 0 if body.startswith(mark) else body.find(b"\r\n" + mark) + 2
    if at == 1:
        raise Invalid("the form cannot be read: its boundary is not in it")
    found: list[Part] = []
    while True:
        begin = at + len(mark)
        if body.startswith(b"--", begin):
            return found
        if not body.startswith(b"\r\n", begin):
            raise Invalid("the form cannot be read: no line ends after a boundary")
        headers = body.find(b"\r\n\r\n", begin, begin + _LONGEST_HEADERS)
        end = -1 if headers < 0 else body.find(b"\r\n" + mark, headers + 2)
        if end < 0:
            raise Invalid("the form cannot be read: a part does not end")
        field, filename = _named(body[begin + 2 : headers])
        if filename is not None:
            if len(found) >= most:
                raise TooLarge(f"more than {most} images in one request")
            found.append(Part(field, filename, body[headers + 4 : end]))
        at = end + 2


def _named(headers: bytes) -> tuple[str, str | None]:
    """The field's name, and the file's if it is one."""
    plain = _PLAIN.search(headers)
    if plain is not None:
        field, filename = plain.groups()
    else:
        line = _ANY.search(headers)
        options = {} if line is None else parse_options_header(line.group(1))[1]
        field, filename = options.get(b"name", b""), options.get(b"filename")
    name = None if filename is None else filename.decode("utf-8", "replace")
    return field.decode("utf-8", "replace"), name
