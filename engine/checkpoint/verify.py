"""Reading a whole checkpoint once, to know that all of it is usable."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from engine.answers.heads import load_heads
from engine.checkpoint.errors import CheckpointError
from engine.checkpoint.reader import Checkpoint, Progress, open_checkpoint
from engine.config import ModelConfig
from engine.messages import EngineError
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class VerifyReport:
    """What :func:`verify` found. ``problems`` is empty for a checkpoint that Ignis can run."""

    path: Path
    problems: tuple[str, ...]
    parameters: int = 0
    nbytes: int = 0
    formats: tuple[tuple[str, int], ...] = ()
    """(format, number of weights), most frequent first."""
    content_hash: str = ""
    vision: bool = False
    readouts: tuple[str, ...] = ()
    """Names of the attention readouts that its heads.json holds for these very weights."""

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(path: Path, on_progress: Progress | None = None) -> VerifyReport:
    """Check a checkpoint folder: every tensor readable, of the right shape and finite; tokenizer, chat template and
    head lists usable and fitting. Never raises for a bad checkpoint: what is wrong is in the report."""
    try:
        checkpoint = open_checkpoint(path)
    except CheckpointError as error:
        return VerifyReport(path, (error.message,))
    with checkpoint:
        checkpoint.on_progress = on_progress
        config = ModelConfig.from_dict(checkpoint.config)
        problems = [*_bad_tensors(checkpoint), *_bad_text(path, config)]
        content_hash = checkpoint.content_hash()
        readouts: tuple[str, ...] = ()
        try:
            heads = load_heads(path, content_hash, config)
            readouts = tuple(heads.readouts) if heads is not None else ()
        except EngineError as error:
            problems.append(error.message)
        shapes = (torch.Size(checkpoint.shape(name)) for name in checkpoint.names())
        return VerifyReport(
            path,
            tuple(problems),
            parameters=sum(shape.numel() for shape in shapes),
            nbytes=checkpoint.nbytes,
            formats=tuple(checkpoint.formats().items()),
            content_hash=content_hash,
            vision=config.vision is not None,
            readouts=readouts,
        )


def _bad_tensors(checkpoint: Checkpoint) -> list[str]:
    problems = []
    for name in checkpoint.names():
        try:
            if not torch.isfinite(checkpoint.tensor(name, torch.float32)).all():
                problems.append(
                    f"{checkpoint.path}: {name} holds values that are not finite numbers; download it again."
                )
        except CheckpointError as error:
            problems.append(error.message)
    return problems


def _bad_text(path: Path, config: ModelConfig) -> list[str]:
    try:
        tokenizer = Tokenizer(path)
    except EngineError as error:
        return [error.message]
    problems = []
    if len(tokenizer.token_bytes) > config.text.vocab_size:
        problems.append(
            f"{path / 'tokenizer.json'} has {len(tokenizer.token_bytes):,} tokens but the embedding "
            f"{config.text.vocab_size:,} rows; the files do not belong together."
        )
    try:
        if not ChatTemplate(path, tokenizer).exists:
            problems.append(f"{path} has no chat template; copy chat_template.jinja from the model's publisher.")
    except EngineError as error:
        problems.append(error.message)
    return problems
