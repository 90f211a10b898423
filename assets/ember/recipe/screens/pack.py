"""One-file containers: `Pack` for what the drawer needs (icons, fonts, strings), `shards` for finished screens.

Both keep small compressed blobs behind a JSON index, so that loader workers map the file once and decode only what
they draw. A shard is a plain tar: `index.jsonl` (one screen a line) and the pictures `000000.webp`, ...
"""

from __future__ import annotations

import io
import json
import mmap
import tarfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

_MAGIC = b"EMBPACK1"


def write_pack(path: Path, index: dict[str, Any], blobs: list[bytes]) -> int:
    """Write `blobs` behind `index` (JSON); returns the file's size in bytes."""
    header = zlib.compress(json.dumps({"index": index, "sizes": [len(b) for b in blobs]}).encode(), 9)
    with open(path, "wb") as out:
        out.write(_MAGIC + len(header).to_bytes(8, "little") + header)
        out.writelines(blobs)
    return path.stat().st_size


class Pack:
    """A mapped pack file: `index` is its JSON, `blob(i)` the bytes of entry i."""

    def __init__(self, path: Path | str) -> None:
        with open(path, "rb") as source:
            self._map = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
        if self._map[:8] != _MAGIC:
            raise ValueError(
                f"{path} is not a screens pack; make it with `python -m assets.ember.recipe.screens assets`."
            )
        size = int.from_bytes(self._map[8:16], "little")
        header = json.loads(zlib.decompress(self._map[16 : 16 + size]))
        self.index: dict[str, Any] = header["index"]
        ends = np.cumsum(header["sizes"], dtype=np.int64) + 16 + size
        self._spans = np.stack([ends - np.asarray(header["sizes"], dtype=np.int64), ends], 1)

    def blob(self, i: int) -> bytes:
        a, b = self._spans[i]
        return self._map[a:b]

    def __len__(self) -> int:
        return len(self._spans)


def encode_picture(image: Image.Image, quality: int = 80) -> bytes:
    """WebP bytes of an RGB picture: lossy or lossless, whichever is smaller (flat interfaces often win lossless)."""
    lossy, exact = io.BytesIO(), io.BytesIO()
    image.save(lossy, "WEBP", quality=quality, method=4)
    colours = image.getcolors(4096)
    if colours is not None:
        image.save(exact, "WEBP", lossless=True, quality=60, method=3)
        if exact.tell() <= lossy.tell():
            return exact.getvalue()
    return lossy.getvalue()


def check_screen(record: dict[str, Any]) -> None:
    """Raise ValueError naming the first thing wrong with a screen's record (see README.md for the format)."""
    width, height = record["w"], record["h"]
    for item in record["items"]:
        x0, y0, x1, y1 = item["box"]
        if not (0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):
            raise ValueError(
                f"{record['source']}: box {item['box']} of {item['kind']} leaves the {width}x{height} screen"
            )
        if not item["queries"] or any(not query["q"].strip() for query in item["queries"]):
            raise ValueError(f"{record['source']}: {item['kind']} at {item['box']} has an empty question")
        if any(query["by"] not in ("text", "name", "function") for query in item["queries"]):
            raise ValueError(f"{record['source']}: unknown way of asking in {item['queries']}")
    if record["split"] not in ("train", "heldout"):
        raise ValueError(f"{record['source']}: split is {record['split']!r}, not train or heldout")


def write_shard(path: Path, screens: Iterable[tuple[bytes, dict[str, Any]]]) -> int:
    """Write (WebP bytes, record) pairs as a tar; returns how many. The file appears when it is complete. Raises
    ``ValueError`` when there are none."""
    records: list[dict[str, Any]] = []
    unfinished = path.with_suffix(".part")
    with tarfile.open(unfinished, "w") as tar:

        def put(name: str, data: bytes) -> None:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

        for i, (picture, record) in enumerate(screens):
            check_screen(record)
            put(f"{i:06d}.webp", picture)
            records.append({**record, "file": f"{i:06d}.webp"})
        put("index.jsonl", "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode())
    if not records:
        unfinished.unlink()
        raise ValueError(f"No screens were made for {path.name}.")
    unfinished.replace(path)
    return len(records)


class Shard:
    """Random access to a shard: `len()`, `records[i]` and `picture(i)` (uint8 [h, w, 3])."""

    def __init__(self, path: Path | str) -> None:
        self.path = path
        with tarfile.open(path) as tar:
            members = {member.name: (member.offset_data, member.size) for member in tar.getmembers()}
        offset, size = members["index.jsonl"]
        with open(path, "rb") as source:
            source.seek(offset)
            self.records: list[dict[str, Any]] = [json.loads(line) for line in source.read(size).splitlines()]
        self._spans = [members[record["file"]] for record in self.records]

    def __len__(self) -> int:
        return len(self.records)

    def picture(self, i: int) -> np.ndarray:
        offset, size = self._spans[i]
        with open(self.path, "rb") as source:  # opened anew, so that worker processes share no file position
            source.seek(offset)
            return np.asarray(Image.open(io.BytesIO(source.read(size))).convert("RGB"))
