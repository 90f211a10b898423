"""``ignis point``: where on a screenshot something is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ignis_desktop.cli.errors import NOT_FOUND, USAGE, CommandError
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
    help="Save a copy with the points marked.",
)
@click.option("--box", is_flag=True, help="Print boxes instead of points: not available yet.")
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
    """
    if box:
        raise CommandError("--box is not available yet: the models can point but not draw boxes; leave it out.", USAGE)
    if any(not question.strip() for question in questions):
        raise click.UsageError("A question is empty.")
    uri = image_uri(image)
    with connected(connection, "point") as session, prefill_shown(session) as prefill:
        screen = session.post("/v1/screens", {"image": uri})
        prefill.stop()
        try:
            answers = [session.post(f"/v1/screens/{screen['id']}/point", {"question": text}) for text in questions]
        finally:
            session.delete(f"/v1/screens/{screen['id']}")
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
            x, y = answer["pixels"] if answer["found"] else ("-", "-")
            click.echo(f"{x} {y}")
    return NOT_FOUND if missing else 0


def _save_overlay(source: str, target: str, answers: Sequence[dict[str, Any]]) -> None:
    """The picture with a numbered crosshair at each point that was found."""
    import io

    from PIL import Image

    with Image.open(io.BytesIO(read_bytes(source))) as opened:
        picture = opened.convert("RGB")
    for number, answer in enumerate(answers, 1):
        if answer["found"]:
            _mark(picture, answer["pixels"], str(number) if len(answers) > 1 else "")
    try:
        picture.save(target)
    except (OSError, ValueError) as fault:
        raise CommandError(f"{target} cannot be written: {fault}.") from fault


def _mark(picture: Image.Image, pixels: Sequence[float], caption: str) -> None:
    """A crosshair with a light rim, so that it shows on any background; its size goes with the picture's."""
    from PIL import ImageDraw, ImageFont

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
    if caption:
        font = ImageFont.load_default(size=1.5 * radius)
        corner = (x + radius, y + radius)
        draw.text(corner, caption, fill=MARK, font=font, stroke_width=2, stroke_fill=MARK_HALO)
