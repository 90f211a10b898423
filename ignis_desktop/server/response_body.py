"""What a request for a response may say."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ignis_desktop.server.errors import bad_request
from ignis_desktop.server.sampling import SamplingBody
from ignis_desktop.server.turn import EFFORT_BUDGETS

MAX_METADATA = 16
LOGPROBS = "message.output_text.logprobs"


class ResponseInputBody(SamplingBody):
    input: str | list[dict[str, Any]] = Field(default_factory=list)
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = Field(None, description="false: the first call alone")
    text: dict[str, Any] | None = Field(None, description="format: text, json_object or json_schema")
    reasoning: dict[str, Any] | None = Field(None, description="effort: none and minimal switch thinking off")
    enable_thinking: bool | None = None
    thinking_budget: int | None = Field(None, ge=0)

    @property
    def thinking(self) -> bool | None:
        """Whether to think before answering; None leaves it to the model's template. Raises ``ApiError``."""
        effort = (self.reasoning or {}).get("effort")
        if effort is not None and not isinstance(effort, str):
            raise bad_request("reasoning.effort: a word, such as none or high.", "reasoning.effort")
        if self.enable_thinking is not None or effort is None:
            return self.enable_thinking
        return effort not in ("none", "minimal")

    @property
    def budget(self) -> int | None:
        """Tokens of reasoning; None does not limit it."""
        if self.thinking_budget is not None:
            return self.thinking_budget
        return EFFORT_BUDGETS.get((self.reasoning or {}).get("effort") or "")

    @property
    def format(self) -> dict[str, Any]:
        """``text.format``, checked. Raises ``ApiError`` 400."""
        form = (self.text or {}).get("format") or {"type": "text"}
        where = "text.format"
        kind = form.get("type") if isinstance(form, dict) else None
        if kind not in ("text", "json_object", "json_schema"):
            raise bad_request(f"{where}.type: text, json_object or json_schema.", f"{where}.type")
        if kind == "json_schema" and not isinstance(form.get("schema"), dict):
            raise bad_request(f"{where}.schema: a format of type json_schema has a schema.", f"{where}.schema")
        return form


class ResponseBody(ResponseInputBody):
    max_output_tokens: int | None = Field(None, ge=1)
    store: bool | None = Field(None, description="false: nothing is kept")
    background: bool | None = Field(None, description="false")
    include: list[str] | None = None
    metadata: dict[str, str] | None = None
    top_logprobs: int | None = Field(None, ge=0, le=20)
    truncation: str | None = None
    conversation: Any = None
    prompt: Any = None

    def refuse_unsupported(self) -> None:
        """Raises ``ApiError`` 400 for what would change the answer but is not there: ignoring it would mislead."""
        if self.background:
            raise bad_request("background: responses are made while their client waits; leave it false.", "background")
        for name in ("conversation", "prompt"):
            if getattr(self, name) is not None:
                raise bad_request(f"{name}: nothing of this kind is kept here; send input instead.", name)
        if self.top_logprobs or LOGPROBS in (self.include or ()):
            param = "top_logprobs" if self.top_logprobs else "include"
            message = f"{param}: log probabilities are given by /v1/chat/completions, not here."
            raise bad_request(message, param)
        if len(self.metadata or ()) > MAX_METADATA:
            raise bad_request(f"metadata: at most {MAX_METADATA} entries.", "metadata")
