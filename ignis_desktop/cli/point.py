"""``ignis point``: where on a screenshot something is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ignis_desktop.cli.errors import NOT_FOUND, CommandError
from ignis_desktop.cli.inputs import image_uri, label, read_bytes
from ignis_desktop.cli.options import ConnectionOptions, connection_options
from ignis_desktop.cli.progress import prefill_shown
from ignis_desktop.cli.session import connected

if TYPE_CHECKING:
    from PIL import Image

MARK = (230, 81, 0)
MARK_HALO = (255, 255, 255)


@click.command(short_help="Find things on a screenshot.")
@click.argument("image")
@click.argument("questions", nargs=-1, required=True, metavar="QUESTION...")
@click.option("--json", "as_json", is_flag=True, help="Print a list with one whole answer a question as JSON.")
@click.option(
    "--overlay",
    metavar="OUT",
    type=click.Path(dir_okay=False, writable=True),
    help="Save a copy with the points (or boxes) marked.",
)
@click.option("--box", is_flag=True, help="Print boxes instead of points: left, top, right and bottom edge.")
@connection_options
def point(
    image: str,
    questions: tuple[str, ...],
    as_json: bool,
    overlay: str | None,
    box: bool,
    connection: ConnectionOptions,
) -> int:
    """Print where on IMAGE each QUESTION's answer is: "x y" in the picture's pixels, one line a question.

    The picture is encoded once for all questions. A question with no answer prints "- -" and makes the exit code 3.
    Boxes are "left top right bottom", as exact as the model's cells (--json tells the uncertainty in pixels).
    """
    if any(not question.strip() for question in questions):
        raise click.UsageError("A question is empty.")
    uri = image_uri(image)
    with connected(connection, "point") as session, prefill_shown(session) as prefill:
        screen = session.post("/v1/screens", {"image": uri})
        prefill.stop()
        try:
            asked = {"questions": list(questions), "box": box}
            answers = session.post(f"/v1/screens/{screen['id']}/point", asked)["answers"]
        finally:
            session.delete(f"/v1/screens/{screen['id']}")
    for text, answer in zip(questions, answers, strict=True):
        if "error" in answer:
            raise CommandError(f"{text}: {answer['error']['message']}")
    if overlay:
        _save_overlay(image, overlay, answers)
    if as_json:
        whole = [{"question": text, **answer} for text, answer in zip(questions, answers, strict=True)]
        click.echo(json.dumps(whole, ensure_ascii=False, indent=2))
    missing = False
    for text, answer in zip(questions, answers, strict=True):
        if not answer["found"]:
            missing = True
            click.echo(f"ignis: not found in {label(image)}: {text}", err=True)
        if not as_json:
            numbers = answer["box" if box else "pixels"]
            click.echo(" ".join(str(number) if answer["found"] else "-" for number in numbers))
    return NOT_FOUND if missing else 0


def _save_overlay(source: str, target: str, answers: Sequence[dict[str, Any]]) -> None:
    """The picture with a numbered crosshair at each point that was found, or a frame around each box."""
    import io

    from PIL import Image

    with Image.open(io.BytesIO(read_bytes(source))) as opened:
        picture = opened.convert("RGB")
    for number, answer in enumerate(answers, 1):
        if answer["found"]:
            caption = str(number) if len(answers) > 1 else ""
            if "box" in answer:
                _frame(picture, answer["box"], caption)
            else:
                _mark(picture, answer["pixels"], caption)
    try:
        picture.save(target)
    except (OSError, ValueError) as fault:
        raise CommandError(f"{target} cannot be written: {fault}.") from fault


def _mark(picture: Image.Image, pixels: Sequence[float], caption: str) -> None:
    """A crosshair with a light rim, so that it shows on any background; its size goes with the picture's."""
    from PIL import ImageDraw

    draw = ImageDraw.Draw(picture)
    x, y = pixels
    radius = max(8, min(picture.size) // 60)
    width = max(2, radius // 6)
    for colour, extra in ((MARK_HALO, 2), (MARK, 0)):
        stroke = width + 2 * extra
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=colour, width=stroke)
        for a, b in (((-2, 0), (-0.5, 0)), ((0.5, 0), (2, 0)), ((0, -2), (0, -0.5)), ((0, 0.5), (0, 2))):
            ends = [(x + dx * radius, y + dy * radius) for dx, dy in (a, b)]
            draw.line(ends, fill=colour, width=stroke)
    _label(picture, (x + radius, y + radius), caption)


def _frame(picture: Image.Image, box: Sequence[int], caption: str) -> None:
    """A frame outside a box, with a light rim."""
    from PIL import ImageDraw

    draw = ImageDraw.Draw(picture)
    x0, y0, x1, y1 = box
    width = max(2, min(picture.size) // 360)
    # Pillow draws an outline inside the corners it is given, and those belong to it.
    for colour, reach, stroke in ((MARK_HALO, 2 * width, 2 * width), (MARK, width, width)):
        draw.rectangle((x0 - reach, y0 - reach, x1 - 1 + reach, y1 - 1 + reach), outline=colour, width=stroke)
    _label(picture, (x1 + width, y1 + width), caption)


def _label(picture: Image.Image, corner: tuple[float, float], caption: str) -> None:
    if not caption:
        return
    from PIL import ImageDraw, ImageFont

    font = ImageFont.load_default(size=max(12, min(picture.size) // 40))
    ImageDraw.Draw(picture).text(corner, caption, fill=MARK, font=font, stroke_width=2, stroke_fill=MARK_HALO)
