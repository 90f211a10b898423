"""Uploads through the real openai and anthropic clients, and their use in requests."""

from __future__ import annotations

import base64
import io
import time
from typing import Any

import anthropic
import httpx
import openai
import pytest
from PIL import Image

from ignis_desktop.store.files import FileDatabase, StorageFull

PIXELS = {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is it?"}]}], "max_tokens": 1}


def png(colour: str = "red", size: tuple[int, int] = (48, 40), kind: str = "PNG", **options: Any) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", size, colour).save(data, kind, **options)
    return data.getvalue()


def chat(http: httpx.Client, part: dict[str, Any]) -> httpx.Response:
    messages = [{"role": "user", "content": [{"type": "text", "text": "Look."}, part]}]
    return http.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 1})


def test_from_upload_to_deletion(client: openai.OpenAI) -> None:
    data = png()
    file = client.files.create(file=("shot.png", data), purpose="vision")
    assert file.id.startswith("file-")
    assert (file.object, file.bytes, file.filename, file.purpose) == ("file", len(data), "shot.png", "vision")
    assert abs(file.created_at - time.time()) < 60
    assert client.files.retrieve(file.id) == file
    assert client.files.content(file.id).read() == data
    assert file in list(client.files.list(purpose="vision"))
    assert file not in list(client.files.list(purpose="assistants"))
    gone = client.files.delete(file.id)
    assert (gone.id, gone.deleted) == (file.id, True)
    for again in (client.files.retrieve, client.files.content, client.files.delete):
        with pytest.raises(openai.NotFoundError) as refused:
            again(file.id)
        assert refused.value.code == "file_not_found"


def test_pages(client: openai.OpenAI) -> None:
    ids = [client.files.create(file=(f"{n}.txt", b"text"), purpose="batch").id for n in range(5)]
    first = client.files.list(purpose="batch", limit=2)
    assert [file.id for file in first.data] == ids[:2:-1]
    assert first.has_more
    assert [file.id for file in client.files.list(purpose="batch", limit=2)] == ids[::-1]
    assert [file.id for file in client.files.list(purpose="batch", limit=2, order="asc")] == ids
    for file_id in ids:
        client.files.delete(file_id)


def test_the_anthropic_client(claude: anthropic.Anthropic) -> None:
    file = claude.beta.files.upload(file=("notes.txt", b"one\ntwo\n", "text/plain"))
    assert (file.type, file.filename, file.mime_type, file.size_bytes) == ("file", "notes.txt", "text/plain", 8)
    assert abs(file.created_at.timestamp() - time.time()) < 60
    assert claude.beta.files.retrieve_metadata(file.id) == file
    assert claude.beta.files.download(file.id).read() == b"one\ntwo\n"
    assert file.id in [entry.id for entry in claude.beta.files.list()]
    assert claude.beta.files.delete(file.id).id == file.id
    with pytest.raises(anthropic.NotFoundError, match="There is no file"):
        claude.beta.files.retrieve_metadata(file.id)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "{id}"}},
        {"type": "file", "file": {"file_id": "{id}"}},
    ],
    ids=["image_url", "file"],
)
def test_an_uploaded_picture_is_the_picture_itself(http: httpx.Client, client: openai.OpenAI, part: Any) -> None:
    data = png("blue", (70, 50))
    file = client.files.create(file=("a.png", data), purpose="vision")
    named = {"type": part["type"], part["type"]: dict.fromkeys(part[part["type"]], file.id)}
    inline = "data:image/png;base64," + base64.b64encode(data).decode()
    by_name = chat(http, named)
    assert by_name.status_code == 200, by_name.text
    by_value = chat(http, {"type": "image_url", "image_url": {"url": inline}})
    text_only = chat(http, {"type": "text", "text": ""})
    tokens = [answer.json()["usage"]["prompt_tokens"] for answer in (by_name, by_value, text_only)]
    assert tokens[0] == tokens[1] > tokens[2]
    client.files.delete(file.id)


def test_a_text_is_read_with_its_name(http: httpx.Client, client: openai.OpenAI, replay: Any) -> None:
    file = client.files.create(file=("../etc/notes.md", "\ufeffréservé\n".encode()), purpose="user_data")
    assert file.filename == "notes.md"
    replay.answers("Yes.")
    assert chat(http, {"type": "file", "file": {"file_id": file.id}}).status_code == 200
    assert '<document title="notes.md">\nréservé\n\n</document>' in replay.prompts[0]
    client.files.delete(file.id)


def test_a_text_is_no_image(http: httpx.Client, client: openai.OpenAI) -> None:
    file = client.files.create(file=("a.txt", b"text"), purpose="user_data")
    answer = chat(http, {"type": "image_url", "image_url": {"url": file.id}})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "messages.0.content.1.image_url.url"
    client.files.delete(file.id)


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ({"type": "file", "file": {"file_id": "file-0"}}, "file_not_found"),
        ({"type": "image_url", "image_url": {"url": "file-0"}}, "file_not_found"),
        ({"type": "file", "file": {}}, "invalid_value"),
        ({"type": "file", "file": "file-0"}, "invalid_value"),
        ({"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0xLjcK/w=="}}, "unsupported_file"),
        ({"type": "file", "file": {"file_data": "data:text/plain;base64,%"}}, "invalid_image"),
    ],
)
def test_what_cannot_be_attached(http: httpx.Client, part: dict[str, Any], code: str) -> None:
    answer = chat(http, part)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == code
    assert answer.json()["error"]["param"].startswith("messages.0.content.1.")


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"", 400, "empty_file"),
        (b"\0\1\2", 400, "unsupported_file"),
        (b"caf\xe9", 400, "unsupported_file"),
        (b"%PDF-1.7\n\xff\xfe", 400, "unsupported_file"),
        (b"a" * (2**20 + 1), 413, "file_too_large"),
    ],
)
def test_uploads_that_are_refused(http: httpx.Client, data: bytes, status: int, code: str) -> None:
    answer = http.post("/v1/files", files={"file": ("a", data)}, data={"purpose": "user_data"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.json()["error"]["param"] == "file"


@pytest.mark.parametrize(
    "options",
    [
        {"json": {"file": "x"}},
        {"data": {"purpose": "vision"}},
        {"files": {"file": ("a.txt", b"a")}, "data": {"purpose": ""}},
        {"files": {"file": ("a.txt", b"a")}, "data": {"expires_after[seconds]": "-1"}},
        {"files": [("file", ("a.txt", b"a")), ("file", ("b.txt", b"b"))]},
        {"content": b"--x\r\nbroken", "headers": {"content-type": "multipart/form-data; boundary=x"}},
        {"content": b"x", "headers": {"content-type": "multipart/form-data"}},
    ],
)
def test_broken_forms(http: httpx.Client, options: dict[str, Any]) -> None:
    answer = http.post("/v1/files", **options)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_content_is_never_a_page_of_this_server(http: httpx.Client, client: openai.OpenAI) -> None:
    file = client.files.create(file=("a.html", b"<script>alert(1)</script>"), purpose="user_data")
    headers = http.get(f"/v1/files/{file.id}/content").headers
    assert headers["content-type"].startswith("text/plain")
    assert (headers["content-disposition"], headers["x-content-type-options"]) == ("attachment", "nosniff")
    client.files.delete(file.id)


def test_all_files_together_have_a_limit(tmp_path: Any) -> None:
    files = FileDatabase(tmp_path / "files.sqlite", 10)
    first = files.add("a", "text/plain", "vision", b"123456")
    with pytest.raises(StorageFull):
        files.add("b", "text/plain", "vision", b"12345")
    assert files.delete(first.id)
    files.add("b", "text/plain", "vision", b"1234567890")
    files.close()


def test_what_has_expired_is_gone_and_makes_room(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    files = FileDatabase(tmp_path / "files.sqlite", 10)
    now = time.time()
    old = files.add("a", "text/plain", "vision", b"1234567890", 5.0)
    assert files.get(old.id) == old
    monkeypatch.setattr(time, "time", lambda: now + 60)
    assert files.get(old.id) is files.data(old.id) is None
    assert files.list(limit=10) == []
    files.add("b", "text/plain", "vision", b"1234567890")
    files.close()


def test_nothing_is_left_of_what_is_deleted(tmp_path: Any) -> None:
    files = FileDatabase(tmp_path / "files.sqlite", 2**20)
    kept = files.add("a", "text/plain", "vision", b"another word" * 1000)
    gone = files.add("b", "text/plain", "vision", b"secret word" * 1000)
    files.delete(gone.id)
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"another word" in left
    assert b"secret word" not in left
    assert files.data(kept.id) is not None
    files.close()


def test_files_outlast_the_program(tmp_path: Any) -> None:
    files = FileDatabase(tmp_path / "data" / "files.sqlite", 10)
    kept = files.add("a", "text/plain", "vision", b"12")
    files.close()
    again = FileDatabase(tmp_path / "data" / "files.sqlite", 10)
    assert again.list(limit=10) == [kept]
    assert again.data(kept.id) == b"12"
    again.close()
