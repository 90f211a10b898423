"""Every fault as the body that the client's kind of API has for it.

OpenAI's is ``{"error": {"message", "type", "code", "param"}}``, Anthropic's ``{"type": "error", "error": {"type",
"message", "details"}, "request_id"}``.
"""

from __future__ import annotations

import json
import logging
import math
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import Scope

from engine.messages import BusyError, EngineError

logger = logging.getLogger(__name__)

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    422: "invalid_request_error",
    431: "request_too_large",
    503: "overloaded_error",
    504: "timeout_error",
}
ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
BRANCHES = ("str", "int", "float", "bool")
CLIENT_GONE = 499
"""What the request log shows for a client that went away before its answer; nothing is sent."""


class ApiError(Exception):
    """An answer other than 2xx. ``extra`` adds keys beside the four of OpenAI's body."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        retry_after: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after = retry_after
        self.extra = dict(extra or {})

    @classmethod
    def of(cls, error: EngineError, param: str | None = None) -> ApiError:
        """An engine's fault with the status it maps to."""
        retry_after = error.retry_after if isinstance(error, BusyError) else None
        if error.code == "cancelled":
            return cancelled()
        code = error.code
        if code == EngineError("").code:  # the engine named none: the status says what kind of fault it is
            code = {400: "invalid_value", 504: "deadline_exceeded"}.get(error.status, code)
        return cls(error.status, error.message, code=code, param=error.param or param, retry_after=retry_after)

    def renamed(self, old: str, new: str) -> ApiError:
        """The same fault of a request in which a field has another name."""
        known = {key: value for key, value in vars(self).items() if key not in ("status", "message", "code", "param")}
        message, param = self.message.replace(old, new), self.param and self.param.replace(old, new)
        return ApiError(self.status, message, code=self.code, param=param, **known)

    def body(self, scope: Scope | None = None) -> dict[str, Any]:
        """As the client of the request behind ``scope`` expects it; without one, OpenAI's."""
        if scope is not None and is_anthropic(scope):
            kind = ANTHROPIC_TYPES.get(self.status, "api_error" if self.status >= 500 else "invalid_request_error")
            # The words by which clients know that it is time to shorten the conversation.
            long = "prompt is too long: " if self.code == "context_length_exceeded" else ""
            error = {"type": kind, "message": long + self.message, "details": {"error_code": self.code}}
            return {"type": "error", "error": error, "request_id": scope.get("ignis.request_id")}
        kind = TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        return {"error": {"message": self.message, "type": kind, "code": self.code, "param": self.param, **self.extra}}

    def headers(self) -> dict[str, str]:
        headers = {}
        if self.retry_after is not None:
            headers["retry-after"] = str(max(1, math.ceil(self.retry_after)))
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        if self.status == 408:  # the rest of the body may never come
            headers["connection"] = "close"
        return headers

    def response(self, scope: Scope | None = None) -> JSONResponse:
        return JSONResponse(self.body(scope), self.status, self.headers())


class ClientGone(Exception):
    """The client closed the connection before its answer was ready."""


def is_anthropic(scope: Scope) -> bool:
    """Whether a request speaks Anthropic's API: by its path, or by the header that all its clients send."""
    path = scope["path"]
    if path == "/v1/messages" or path.startswith("/v1/messages/"):
        return True
    return any(name == b"anthropic-version" for name, _ in scope["headers"])


def cancelled() -> ApiError:
    """Cancelled by someone else than the client, who is still there: to it the server was not available."""
    return ApiError(503, "The request was cancelled before it was finished.", code="cancelled")


def fault(error: Exception) -> ApiError:
    """A fault of the server's own; what it was stands in the log, not in the answer."""
    if isinstance(error, sqlite3.Error):
        message = (
            f"What is kept here cannot be read or written ({error}); see that the data folder can be, and has room."
        )
        return ApiError(500, message, code="storage_failed")
    return ApiError(
        500, f"The server hit a fault ({type(error).__name__}); its log has the details.", code="internal_error"
    )


def bad_request(message: str, param: str | None = None, code: str = "invalid_value") -> ApiError:
    return ApiError(400, message, code=code, param=param)


def describe_validation(errors: Sequence[Any]) -> tuple[str, str | None]:
    """(message, param) for pydantic's list of errors: the one found deepest, as unions report a fault once a branch."""
    worst = max(errors, key=lambda error: len(_place(error)))
    param = ".".join(_place(worst)) or None
    reason = str(worst["msg"]).removeprefix("Value error, ")
    return (f"{param}: {reason}" if param else reason), param


def _place(error: Any) -> list[str]:
    """Where an error is, without the names of union branches that pydantic puts in between."""
    return [str(p) for p in error["loc"] if isinstance(p, int) or (p.isidentifier() and p not in BRANCHES)]


def install(app: FastAPI) -> None:
    """Make every fault of ``app`` leave in the shape of its client's API."""

    @app.exception_handler(ApiError)
    async def api_error(request: Request, error: ApiError) -> JSONResponse:
        note_error(request, error.code)
        return error.response(request.scope)

    @app.exception_handler(EngineError)
    async def engine_error(request: Request, error: EngineError) -> JSONResponse:
        return await api_error(request, ApiError.of(error))

    @app.exception_handler(ClientGone)
    async def client_gone(request: Request, error: ClientGone) -> JSONResponse:
        note_error(request, "client_gone")
        return JSONResponse({}, CLIENT_GONE)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        method, path = request.method, request.url.path
        message, code = {
            404: (f"There is no {path} here; GET /docs lists what there is.", "unknown_route"),
            405: (f"{path} does not take {method}.", "method_not_allowed"),
        }.get(error.status_code, (str(error.detail), "http_error"))
        note_error(request, code)
        response = ApiError(error.status_code, message, code=code).response(request.scope)
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(RequestValidationError)
    async def validation_error(request: Request, error: RequestValidationError) -> JSONResponse:
        message, param = describe_validation(error.errors())
        return await api_error(request, bad_request(message, param))


def note_error(request: Request, code: str) -> None:
    """Put an error's code on the request's log record."""
    record = request.scope.get("ignis.record")
    if record is not None:
        record.note(error=code)


def error_bytes(error: ApiError, scope: Scope) -> bytes:
    """The body of an error that is sent after the response began."""
    return json.dumps(error.body(scope), ensure_ascii=False).encode()
