"""Grammars over a model's vocabulary: which tokens may come next, one bit a token. llguidance does the work.

The library is imported when the first grammar is compiled: an engine that never gets one runs without it.
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from engine.messages import EngineError, RequestError
from engine.text.lark import on_one_line
from engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

BITS = 32
"""Of a word of a mask."""
KEPT = 64
"""Compiled grammars that are kept: requests of one program tend to share theirs."""


def mask_words(vocabulary: int) -> int:
    """int32 words of a mask over a vocabulary."""
    return -(-vocabulary // BITS)


def set_bits(bits: Tensor, tokens: Collection[int]) -> None:
    """Make a mask of these tokens alone."""
    words = bits.zero_().numpy().view(np.uint32)
    for token in tokens:
        words[token // BITS] |= np.uint32(1 << token % BITS)


class Matcher:
    """Where one answer stands in its grammar. Used by one thread at a time."""

    def __init__(self, backend: LLMatcher, end_ids: Collection[int]) -> None:
        self._backend = backend
        self._end_ids = end_ids

    def accept(self, token: int) -> None:
        """Go on by a token, which the newest mask allowed. Raises ``EngineError``."""
        self._backend.consume_token(token)
        self._check()

    def fill(self, bits: Tensor) -> None:
        """Write the mask of what may come next.

        Args:
            bits: int32 [ceil(V / 32)] on the host; token t is bit t % 32 of word t // 32.

        Raises ``EngineError`` when the grammar got too complex to go on.
        """
        if self._backend.is_stopped():  # nothing but the end may follow
            set_bits(bits, self._end_ids)
        else:
            self._backend.unsafe_compute_mask_ptr(bits.data_ptr(), bits.nbytes)
        self._check()

    def _check(self) -> None:
        if self._backend.is_error():
            reason = self._backend.get_error().strip().splitlines()[0]
            raise EngineError(f"The answer's grammar cannot be followed any further: {reason}", code="grammar_failed")


class Grammars:
    """Compiles grammars for one vocabulary. Thread-safe; compiling may take a second, so never on the engine's thread
    or an event loop."""

    def __init__(self, tokenizer: Tokenizer, end_ids: Collection[int], vocabulary: int) -> None:
        """``vocabulary``: how many logits a row has, which may be more than there are tokens."""
        self._tokenizer = tokenizer
        self._end_ids = sorted(end_ids)
        self._vocabulary = vocabulary
        self._lock = threading.Lock()
        self._words: LLTokenizer | None = None
        self._compiled: OrderedDict[str, LLMatcher] = OrderedDict()

    def matcher(self, grammar: str) -> Matcher:
        """A matcher at the start of ``grammar`` (llguidance's variant of Lark). Quick when it was compiled lately.

        Raises:
            RequestError: it does not compile.
            EngineError: llguidance is not installed.
        """
        with self._lock:
            compiled = self._compiled.get(grammar)
            if compiled is not None:
                self._compiled.move_to_end(grammar)
                return Matcher(compiled.deep_copy(), self._end_ids)
        words = self._vocabulary_of_bytes()
        from llguidance import LLMatcher

        compiled = LLMatcher(words, LLMatcher.grammar_from_lark(grammar), log_level=0)
        if compiled.is_error():
            raise RequestError(_reason(compiled.get_error()), code="invalid_grammar")
        with self._lock:
            self._compiled[grammar] = compiled
            while len(self._compiled) > KEPT:
                self._compiled.popitem(last=False)
            return Matcher(compiled.deep_copy(), self._end_ids)

    def check_schema(self, schema: Mapping[str, Any]) -> None:
        """Raises ``RequestError`` when an answer cannot be held to a JSON schema, naming what stands against it."""
        _require_library()
        from llguidance import LLMatcher

        fault = LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(json.dumps(on_one_line(schema))))
        if fault:
            raise RequestError(_reason(fault), code="unsupported_schema")

    def _vocabulary_of_bytes(self) -> LLTokenizer:
        """The tokens as llguidance wants them. Added tokens are no text: only grammars that name them let them come."""
        _require_library()
        from llguidance import LLTokenizer, TokenizerWrapper

        if not self._end_ids:
            raise RequestError("This model has no end token, so no grammar can say where an answer ends.")
        with self._lock:
            if self._words is None:
                tokens = self._tokenizer.token_bytes[: self._vocabulary]
                tokens = [*tokens, *[b""] * (self._vocabulary - len(tokens))]
                source = _Source(self._tokenizer, tokens, self._end_ids[0])
                self._words = LLTokenizer(TokenizerWrapper(source), n_vocab=self._vocabulary, eos_token=self._end_ids)
            return self._words


class _Source:
    """What ``TokenizerWrapper`` reads."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, tokens: list[bytes], end_id: int) -> None:
        self._tokenizer = tokenizer
        self.tokens = tokens
        self.eos_token_id = end_id
        ids = (tokenizer.token_id(content) for content in tokenizer.added_tokens)
        self.special_token_ids = [token for token in ids if token is not None]

    def __call__(self, text: str) -> list[int]:
        return self._tokenizer.encode(text)


def _require_library() -> None:
    try:
        import llguidance  # noqa: F401  # is it there?
    except ImportError:
        raise EngineError(
            "Holding an answer to a grammar needs the package llguidance; install it with pip install llguidance.",
            code="grammar_not_available",
        ) from None


_UNIMPLEMENTED = re.compile(r"Unimplemented keys: \[(.*)\]")


def _reason(fault: str) -> str:
    """llguidance's message as a sentence that names the keyword and says what to do."""
    first = fault.strip().splitlines()[0]
    if found := _UNIMPLEMENTED.search(fault):
        names = found[1].replace('"', "")
        return f"an answer cannot be held to the schema's {names}; leave it out."
    if "oneOf constraints" in fault:
        return "an answer cannot be held to the schema's oneOf, whose branches may overlap; use anyOf."
    if "regex parse error" in fault:
        return f"an answer cannot be held to the schema's pattern: {fault.strip().splitlines()[-1].strip()}."
    if found := re.search(r"Unknown format: (.*)", fault):
        return f"an answer cannot be held to the schema's format {found[1]!r}; leave it out."
    return f"an answer cannot be held to this: {first.rstrip('.')}."
