"""The colours and sizes everything is drawn with. Nothing else in the window names a colour."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Tokens:
    """One theme. Colours are ``#RRGGBB``; ``accent`` marks *live* things and never carries text."""

    name: str
    window: str
    panel: str
    raised: str
    hover: str
    pressed: str
    line: str
    control_line: str
    """Outline of a control or of something raised."""
    text: str
    secondary: str
    disabled: str
    accent: str
    selection: str
    good: str
    warn: str
    bad: str
    track: str
    """Ground of a bar or a map where nothing is."""
    class_interactive: str
    class_agent: str
    page_shared: str
    page_kept: str
    memory_weights: str
    """Lines of the memory plan: muted hues of one lightness, the weights' darker."""
    memory_kv: str
    memory_state: str
    memory_workspace: str
    memory_vision: str
    memory_runtime: str
    memory_rounds: str
    memory_tier: str
    code_keyword: str
    code_string: str
    code_number: str
    code_comment: str
    code_name: str

    def colours(self) -> dict[str, str]:
        """Token name → colour."""
        values: dict[str, str] = asdict(self)
        values.pop("name")
        return values


LIGHT = Tokens(
    name="light",
    window="#F7F6F4",
    panel="#FFFFFF",
    raised="#FFFFFF",
    hover="#EFEDE9",
    pressed="#E6E3DD",
    line="#E4E1DC",
    control_line="#D2CEC7",
    text="#1F1D1A",
    secondary="#6B665E",
    disabled="#A8A299",
    accent="#D9541E",
    selection="#F6D9CC",
    good="#2A7348",
    warn="#8A5A00",
    bad="#B3261E",
    track="#F0EEEA",
    class_interactive="#3D6A94",
    class_agent="#6B8F80",
    page_shared="#8A6AA3",
    page_kept="#9A9389",
    memory_weights="#426593",
    memory_kv="#82C1C5",
    memory_state="#B5B989",
    memory_workspace="#CAA6CB",
    memory_vision="#94C1A2",
    memory_runtime="#C6B285",
    memory_rounds="#B3AEDC",
    memory_tier="#DAA4AC",
    code_keyword="#7A3E9D",
    code_string="#2A7348",
    code_number="#8A5A00",
    code_comment="#6B665E",
    code_name="#1F5FA8",
)

DARK = Tokens(
    name="dark",
    window="#161513",
    panel="#1D1B19",
    raised="#242220",
    hover="#2C2926",
    pressed="#36322E",
    line="#34312D",
    control_line="#464139",
    text="#ECE8E1",
    secondary="#A29B90",
    disabled="#6A645B",
    accent="#F0703A",
    selection="#5A3120",
    good="#5BBE84",
    warn="#E0A93B",
    bad="#F2695F",
    track="#282522",
    class_interactive="#7FA8D1",
    class_agent="#7DA491",
    page_shared="#B79AD0",
    page_kept="#7C756A",
    memory_weights="#3C5F8D",
    memory_kv="#6DB2B6",
    memory_state="#A5A976",
    memory_workspace="#BC96BD",
    memory_vision="#81B292",
    memory_runtime="#B7A372",
    memory_rounds="#A39ECE",
    memory_tier="#CC939C",
    code_keyword="#C99BE8",
    code_string="#8CCB9B",
    code_number="#E0A93B",
    code_comment="#A29B90",
    code_name="#86B7EE",
)

SPACE = 4
"""Pixels of one spacing step."""
CONTROL_HEIGHT = 28
RADIUS = 6
COLUMN_WIDTH = 720
"""Pixels of the reading column."""


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two ``#RRGGBB`` colours, 1–21 (WCAG 2.2, relative luminance)."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
