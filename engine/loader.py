"""From a checkpoint folder to a network in reserved buffers, and everything about the model that needs no tensor."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from engine.answers.heads import HeadLists, load_heads
from engine.checkpoint.catalogue import KnownModel, resolve_model
from engine.checkpoint.reader import Checkpoint, Progress, open_checkpoint
from engine.config import EngineConfig, ModelConfig
from engine.images import ImageLimits
from engine.memory.plan import Layout, plan_load
from engine.messages import EngineError, ImageInput, ModelInfo, Prompt, RequestError, SamplingParams
from engine.model.network import Network, build_network
from engine.sample.grammar import Grammars
from engine.text.marks import branch_points
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer, end_token_ids


@dataclass(frozen=True)
class Loaded:
    """What threads other than the engine's may use of a loaded model."""

    info: ModelInfo
    config: ModelConfig
    tokenizer: Tokenizer
    template: ChatTemplate
    end_ids: frozenset[int]
    heads: HeadLists | None
    limits: ImageLimits | None
    generation: Mapping[str, Any]
    """generation_config.json."""
    grammars: Grammars

    def image_limits(self) -> ImageLimits:
        if self.limits is None:
            raise RequestError(f"{self.info.name} takes no pictures.", code="no_vision")
        return self.limits

    def sampling_defaults(self, thinking: bool) -> SamplingParams:
        """generation_config.json's values; a nested "thinking" or "not_thinking" object overrides them."""
        values = {key: value for key, value in self.generation.items() if value is not None}
        override = values.get("thinking" if thinking else "not_thinking")
        if isinstance(override, Mapping):
            values.update({key: value for key, value in override.items() if value is not None})
        greedy = values.get("do_sample") is False
        return SamplingParams(
            temperature=0.0 if greedy else float(values.get("temperature", 1.0)),
            top_p=float(values.get("top_p", 1.0)),
            top_k=int(values.get("top_k", 0)),
            min_p=float(values.get("min_p", 0.0)),
            presence_penalty=float(values.get("presence_penalty", 0.0)),
            repetition_penalty=float(values.get("repetition_penalty", 1.0)),
        )

    def chat_prompt(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        enable_thinking: bool | None = None,
    ) -> Prompt:
        ids, images = self.template.encode(messages, tools=tools, enable_thinking=enable_thinking)
        prompt = self.with_images(ids, images)
        return replace(prompt, marks=branch_points(prompt.ids, self.tokenizer))

    def with_images(self, ids: Sequence[int], images: Sequence[ImageInput]) -> Prompt:
        """A prompt in which each single image token grew to the number its picture takes."""
        if not images:
            return Prompt(tuple(ids))
        if self.config.vision is None:
            raise RequestError(f"{self.info.name} takes no pictures.", code="no_vision")
        cell = self.config.vision.cell
        grown: list[int] = []
        waiting = iter(images)
        for token in ids:
            count = 1
            if token == self.config.image_token_id:
                image = next(waiting, None)
                if image is None:
                    raise RequestError("The prompt names more pictures than were sent.")
                count = (image.size[0] // cell) * (image.size[1] // cell)
            grown.extend([token] * count)
        if next(waiting, None) is not None:
            raise RequestError("More pictures were sent than the prompt names.")
        return Prompt(tuple(grown), tuple(images))


def load_model(
    engine: EngineConfig,
    device: torch.device,
    dtype: torch.dtype,
    *,
    on_plan: Callable[..., None],
    on_progress: Progress,
) -> tuple[Loaded, Network, Layout]:
    """Check, plan, reserve and read, in this order: what does not fit is refused before anything is read.

    Args:
        on_plan: called with the snapshot's fields once the plan stands.
        on_progress: (bytes done, bytes in all, tensor) while weights are read.

    Raises:
        EngineError: with one sentence naming what is wrong (files, configuration, memory).
    """
    model = resolve_model(engine.model)
    with open_checkpoint(model.path) as checkpoint:
        config = ModelConfig.from_dict(checkpoint.config)
        if engine.yarn is not None:
            config = config.stretched(engine.yarn)
        limits = _image_limits(model.path, config)
        pixels = limits.max_pixels if limits else 0
        layout = plan_load(config, engine, device, dtype, checkpoint, pixels=pixels)
        on_plan(
            memory_plan=layout.plan,
            model=model.name,
            model_id=model.id,
            context_length=layout.max_context,
        )
        loaded = _describe(model, checkpoint, config, limits, layout)
        checkpoint.on_progress = on_progress
        network = build_network(
            config,
            checkpoint,
            slots=engine.lanes,
            pages=layout.pages,
            page_size=engine.page_size,
            device=device,
            dtype=dtype,
            kv_format=layout.kv_format,
            weights=layout.weights,
        )
    return loaded, network, layout


def _image_limits(folder: Path, config: ModelConfig) -> ImageLimits | None:
    if config.vision is None:
        return None
    return ImageLimits.from_dict(_read_json(folder / "preprocessor_config.json"), config.vision)


def _describe(
    model: KnownModel, checkpoint: Checkpoint, config: ModelConfig, limits: ImageLimits | None, layout: Layout
) -> Loaded:
    folder, content_hash = model.path, checkpoint.content_hash()
    tokenizer = Tokenizer(folder)
    heads = load_heads(folder, content_hash, config)
    template = ChatTemplate(folder, tokenizer)
    info = ModelInfo(
        id=model.id,
        name=model.name,
        context_length=layout.max_context,
        vocabulary_size=config.text.vocab_size,
        vision=config.vision is not None,
        locate=heads is not None and heads.locates,
        point=heads is not None and "point" in heads.readouts,
        thinking=template.thinks,
        parameters=layout.parameters,
        content_hash=content_hash,
        formats=tuple(checkpoint.formats().items()),
    )
    generation = _read_json(folder / "generation_config.json")
    ends = end_token_ids(folder, tokenizer)
    grammars = Grammars(tokenizer, ends, config.text.vocab_size)
    return Loaded(info, config, tokenizer, template, ends, heads, limits, generation, grammars)


def _read_json(file: Path) -> dict[str, Any]:
    """A JSON object; an absent file is empty."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise EngineError(f"{file} cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise EngineError(f"{file} must hold a JSON object.")
    return value
