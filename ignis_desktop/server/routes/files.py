"""``/v1/files``: pictures and texts that requests then name by id, for OpenAI's and Anthropic's clients."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from ignis_desktop.server.attachments import as_text
from ignis_desktop.server.errors import ApiError, bad_request, is_anthropic
from ignis_desktop.server.images import media_type
from ignis_desktop.server.state import ServerState, state_of
from ignis_desktop.store.files import StorageFull, StoredFile

router = APIRouter(tags=["Files"])

MAX_NAME = 255
MAX_LISTED = 10_000
MIN_LIFETIME, MAX_LIFETIME = 3600, 30 * 24 * 3600
"""Seconds after which a file may be told to expire."""

_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "purpose": {"type": "string", "description": "kept, and told back; user_data without one"},
                        "expires_after[seconds]": {"type": "integer"},
                    },
                }
            }
        },
    }
}


@router.post("/v1/files", openapi_extra=_FORM)
async def upload(http: Request) -> Response:
    """Keep a picture or a text in UTF-8 (multipart form: `file`, `purpose`)."""
    state = state_of(http)
    try:
        async with http.form(max_files=1, max_fields=16) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise bad_request("file: send the file itself as a part of a multipart form.", "file")
            if (file.size or 0) > state.settings.max_file_bytes:
                raise too_large(state.settings.max_file_bytes)
            name, data = file.filename or "file", await file.read()
            purpose = form.get("purpose", "user_data")
            lifetime = form.get("expires_after[seconds]", form.get("expires_in_seconds"))
    except HTTPException as error:
        raise bad_request(f"The body is not a multipart form: {error.detail}") from None
    if not isinstance(purpose, str) or not purpose.isprintable() or not 0 < len(purpose) <= 64:
        raise bad_request("purpose: a purpose is a word, such as vision or user_data.", "purpose")
    stored = await state.workers.prepare(_keep, state, name, purpose, data, _lifetime(lifetime))
    return JSONResponse(file_json(stored, http))


@router.get("/v1/files")
async def list_files(
    http: Request,
    after: str | None = None,
    limit: int = MAX_LISTED,
    order: Literal["asc", "desc"] = "desc",
    purpose: str | None = None,
    page: str | None = None,
) -> Response:
    """What is kept, the newest first; `after` (or `page`) is the last id of the page before."""
    if not 1 <= limit <= MAX_LISTED:
        raise bad_request(f"limit: 1 to {MAX_LISTED:,} files a page, not {limit}.", "limit")
    state = state_of(http)
    found = await state.workers.prepare(
        state.files.list, after=after or page, limit=limit + 1, order=order, purpose=purpose
    )
    more = len(found) > limit
    data = [file_json(file, http) for file in found[:limit]]
    ids = [entry["id"] for entry in data]
    body: dict[str, Any] = {"data": data, "has_more": more}
    if is_anthropic(http.scope):
        body["next_page"] = ids[-1] if more else None
    else:
        body["object"] = "list"
    return JSONResponse({**body, "first_id": ids[0] if ids else None, "last_id": ids[-1] if ids else None})


@router.get("/v1/files/{file_id}")
async def retrieve(file_id: str, http: Request) -> Response:
    """What is known of one file."""
    return JSONResponse(file_json(await _found(state_of(http), file_id), http))


@router.get("/v1/files/{file_id}/content")
async def content(file_id: str, http: Request) -> Response:
    """The file itself."""
    state = state_of(http)
    file = await _found(state, file_id)
    data = await state.workers.prepare(state.files.data, file_id)
    # As an attachment: a browser must not show what somebody uploaded as a page of this server.
    headers = {"content-disposition": "attachment", "x-content-type-options": "nosniff"}
    return Response(data or b"", media_type=file.kind, headers=headers)


@router.delete("/v1/files/{file_id}")
async def delete(file_id: str, http: Request) -> Response:
    """Drop one file for good."""
    state = state_of(http)
    if not await state.workers.prepare(state.files.delete, file_id):
        raise unknown_file(file_id)
    if is_anthropic(http.scope):
        return JSONResponse({"id": file_id, "type": "file_deleted"})
    return JSONResponse({"id": file_id, "object": "file", "deleted": True})


def file_json(file: StoredFile, http: Request) -> dict[str, Any]:
    """A file as the client's kind of API describes it."""
    if is_anthropic(http.scope):
        return {
            "id": file.id,
            "type": "file",
            "filename": file.name,
            "mime_type": file.kind,
            "size_bytes": file.size,
            "created_at": _timestamp(file.created),
            "expires_at": None if file.expires is None else _timestamp(file.expires),
            "downloadable": True,
        }
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.size,
        "created_at": int(file.created),
        "expires_at": None if file.expires is None else int(file.expires),
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
    }


def unknown_file(file_id: str) -> ApiError:
    return ApiError(404, f"There is no file {file_id[:80]!r}.", code="file_not_found", param="id")


def too_large(limit: int) -> ApiError:
    return ApiError(413, f"file: a file holds at most {limit:,} bytes.", code="file_too_large", param="file")


async def _found(state: ServerState, file_id: str) -> StoredFile:
    file = await state.workers.prepare(state.files.get, file_id)
    if file is None:
        raise unknown_file(file_id)
    return file


def _keep(state: ServerState, name: str, purpose: str, data: bytes, lifetime: float | None) -> StoredFile:
    """What it is, its content says: names and clients' words may be wrong."""
    if not data:
        raise bad_request("file: the file is empty.", "file", "empty_file")
    kind = media_type(data, "file") or ("text/plain" if as_text(data) is not None else None)
    if kind is None:
        message = "file: only pictures (PNG, JPEG, WebP, BMP, GIF, TIFF) and texts in UTF-8 are of use here."
        raise bad_request(message, "file", "unsupported_file")
    plain = "".join(c for c in name.replace("\\", "/").rpartition("/")[2] if c.isprintable() and c not in '<>"')
    try:
        return state.files.add(plain[-MAX_NAME:] or "file", kind, purpose, data, lifetime)
    except StorageFull:
        message = (
            f"file: no room is left; all files together hold at most {state.settings.max_files_bytes:,} bytes. "
            "Delete some first."
        )
        raise ApiError(413, message, code="storage_full", param="file") from None


def _lifetime(value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.isdecimal() or not MIN_LIFETIME <= int(value) <= MAX_LIFETIME:
        message = f"expires_after: a file expires after {MIN_LIFETIME:,} to {MAX_LIFETIME:,} seconds."
        raise bad_request(message, "expires_after")
    return float(value)


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
