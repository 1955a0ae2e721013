"""XMP sidecars: the category as a keyword for photo managers, what is there already kept.

``photo.jpg`` gets ``photo.jpg.xmp``, as darktable and digiKam name them. The keyword stands in
``dc:subject``, and as ``ttgcd|moose`` in ``lr:hierarchicalSubject``: by that an earlier export's
keyword is found and replaced when the category has another name now.
"""

from __future__ import annotations

import io
import os
import xml.etree.ElementTree as ET
from pathlib import Path

from ttgcd.discovery.export.items import Exported, Items
from ttgcd.discovery.export.placing import Places
from ttgcd.storage.durable import write_atomic, writing

_X = "adobe:ns:meta/"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_DC = "http://purl.org/dc/elements/1.1/"
_LR = "http://ns.adobe.com/lightroom/1.0/"
_OWN = {"x": _X, "rdf": _RDF, "dc": _DC, "lr": _LR}
_ROOT = "ttgcd|"
_BEGIN = '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'
_END = '\n<?xpacket end="w"?>\n'


def to_xmp(items: Items, target: Path) -> Exported:
    """A sidecar for every image: beside it when ``target`` is the folder that the run read, else in
    the same sub-folders of ``target``."""
    beside = target.is_dir()
    places, damaged = Places(keep_folders=True), []
    written = 0
    with writing(target, "then export again"):
        for item in items:
            if beside:
                path = Path(f"{items.path(item)}.xmp")
            else:
                place = places.place("", item.id)
                path = target / place.with_name(place.name + ".xmp")
                path.parent.mkdir(parents=True, exist_ok=True)
            before = path.read_bytes() if os.path.lexists(path) else None
            try:
                after = with_keyword(before, item.name)
            except ET.ParseError:
                damaged.append(path)
                continue
            if after != before:
                write_atomic(path, after)
            written += 1
    notes = items.notes()
    if damaged:
        notes += (
            f"{len(damaged)} sidecars are no XMP and were left alone, the first: {damaged[0]}",
        )
    return Exported(target, written, notes)


def with_keyword(sidecar: bytes | None, keyword: str) -> bytes:
    """A sidecar with the keyword in it; everything else of it stays."""
    if sidecar is None:
        root = ET.Element(f"{{{_X}}}xmpmeta")
        prefixes = dict(_OWN)
    else:
        root, prefixes = _parse(sidecar)
    description = _description(root)
    subject = _bag(description, f"{{{_DC}}}subject")
    hierarchy = _bag(description, f"{{{_LR}}}hierarchicalSubject")
    ours = [entry.text for entry in hierarchy if (entry.text or "").startswith(_ROOT)]
    if ours == [_ROOT + keyword] and keyword in [entry.text for entry in subject]:
        assert sidecar is not None
        return sidecar
    for entry in list(hierarchy):
        if entry.text in ours:
            hierarchy.remove(entry)
    former = {(text or "").removeprefix(_ROOT) for text in ours}
    for entry in list(subject):
        if entry.text in former | {keyword}:
            subject.remove(entry)
    ET.SubElement(subject, f"{{{_RDF}}}li").text = keyword
    ET.SubElement(hierarchy, f"{{{_RDF}}}li").text = _ROOT + keyword
    for prefix, uri in prefixes.items():
        ET.register_namespace(prefix, uri)
    ET.indent(root)
    return (_BEGIN + ET.tostring(root, encoding="unicode") + _END).encode("utf-8")


def _parse(sidecar: bytes) -> tuple[ET.Element, dict[str, str]]:
    """The root element, comments included, and the prefixes that the file uses."""
    prefixes = dict(_OWN)
    for _, (prefix, uri) in ET.iterparse(io.BytesIO(sidecar), events=["start-ns"]):
        if prefix and not prefix.startswith("ns"):  # nsN is the library's own
            prefixes[prefix] = uri
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    root = ET.fromstring(sidecar, parser)
    if root.tag not in (f"{{{_X}}}xmpmeta", f"{{{_RDF}}}RDF"):
        raise ET.ParseError("not an XMP packet")
    return root, prefixes


def _description(root: ET.Element) -> ET.Element:
    rdf = root if root.tag == f"{{{_RDF}}}RDF" else root.find(f"{{{_RDF}}}RDF")
    if rdf is None:
        rdf = ET.SubElement(root, f"{{{_RDF}}}RDF")
    tag = f"{{{_RDF}}}Description"
    descriptions = rdf.findall(tag)
    for description in descriptions:
        if description.find(f"{{{_DC}}}subject") is not None:
            return description
    if descriptions:
        return descriptions[0]
    return ET.SubElement(rdf, tag, {f"{{{_RDF}}}about": ""})


def _bag(description: ET.Element, tag: str) -> ET.Element:
    holder = description.find(tag)
    if holder is None:
        holder = ET.SubElement(description, tag)
    bag = holder.find(f"{{{_RDF}}}Bag")
    if bag is None:
        bag = holder.find(f"{{{_RDF}}}Seq")
    return ET.SubElement(holder, f"{{{_RDF}}}Bag") if bag is None else bag
