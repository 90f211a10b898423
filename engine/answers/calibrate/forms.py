"""Ways to ask a model: the prompts among which calibration chooses."""

from __future__ import annotations

from dataclasses import dataclass

from engine.answers.heads import BUNDLED, read_heads
from engine.answers.readouts import Combine, Head, Over, Readout
from engine.text.tokenizer import Tokenizer

CHAT = BUNDLED / "qwen3.8-27b.json"
"""Its prompts are for any model of the family: a chat whose answer is opened."""
_TURN = ("<|im_start|>", "user\n")


@dataclass(frozen=True)
class Form:
    """One prompt, and how heads that are read with it may be combined."""

    name: str
    """What its head list is called."""
    over: Over
    prompt: tuple[str, ...]
    combines: tuple[Combine, ...]
    baseline: str | None = None

    def every_head(self, heads: tuple[Head, ...]) -> Readout:
        """A list of all heads, to read them by."""
        return Readout(self.name, self.over, self.prompt, heads, 1.0, "sum", "peak_3x3", baseline=self.baseline)


def point_forms(tokenizer: Tokenizer) -> list[Form]:
    """A trained read token where the tokenizer has one, and a chat whose answer would be the place."""
    chat = read_heads(CHAT).readouts["point"]
    forms = [Form("point", "image", chat.prompt, ("sum", "anchor_set"))]
    if "<|point|>" in tokenizer.added_tokens:
        picture = ("<|vision_start|>", "{image}", "<|vision_end|>", "\n")
        forms.insert(0, Form("point", "image", (*_TURN, *picture, "{query}", "<|point|>"), ("sum", "anchor_set")))
    return forms


def line_forms(tokenizer: Tokenizer) -> list[Form]:
    """A trained read token where the tokenizer has one, and a chat whose answer would quote the line."""
    chat = read_heads(CHAT).readouts["vote"]
    forms = [Form("vote", "text", chat.prompt, ("vote",), chat.baseline)]
    if "<|line|>" in tokenizer.added_tokens:
        forms.insert(0, Form("line", "lines", (*_TURN, "{lines}", "\n", "{query}", "<|line|>"), ("sum",)))
    return forms
