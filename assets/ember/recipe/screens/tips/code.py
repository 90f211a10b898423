"""Labels with their tooltips in programs' sources: C, C++, Vala and Python with GTK, Qt, KDE, wxWidgets and others.

Strings are first replaced by tokens, so that ``i18nc("a context", "One" " two")`` and ``_("One two")`` read the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Said = tuple[str, str]
_STRING = r'(?:[uUfRLrb]?"(?:[^"\\\n]|\\.)*"|'
_STRING += r"[uUfrb]?'(?:[^'\\\n]|\\.)*')"
_STRINGS = rf"{_STRING}(?:\s*(?:\+\s*)?{_STRING})*"
_WITH_CONTEXT = (
    r"(?:NC_|C_|Q_|i18nc|xi18nc|ki18nc|kxi18nc|pgettext|pgettext_lazy|dgettext|g_dpgettext2?"
    r"|QT_TRANSLATE_NOOP3?|translate|KLazyLocalizedString|XC)"
)
_PLAIN = (
    r"(?:N_|_|_L|_u|i18n|ki18n|xi18n|kli18n|tr|trUtf8|trFromLiteral|QT_TR_NOOP|QObject::tr|XO|XXO"
    r"|TranslatableString|gettext|"
    r"gettext_lazy|ugettext_lazy|ugettext|ngettext|wxTRANSLATE|L|S_|TIP_|IFACE_|vlc_gettext|qtr|__|_t|T|_tr"
    r"|l10n|_translate|P_|Verbatim|"
    r"tt|text)"
)
_QUOTED = re.compile(_STRING)
_MARKED = re.compile(
    rf"\b{_WITH_CONTEXT}\s*\(\s*{_STRINGS}\s*,\s*({_STRINGS})\s*\)|(?<![\w.])(?:[\w:]+(?:\."
    rf"|::))?{_PLAIN}\s*\(\s*({_STRINGS})\s*(?:,\s*{_STRINGS}\s*)?\)"
    rf"|({_STRINGS})"
)
_TOKEN = "\x01"
T = rf"({_TOKEN}[mp]\d+)"
"""A string, marked for translation (m) or plain (p)."""
M = rf"({_TOKEN}m\d+)"
_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'\w])//[^\n]*|\\\n", re.DOTALL)

_NAME = r"((?:\w+(?:->|\.|::))*\w+(?:\[\w+\])?)"
_ASSIGNED = re.compile(rf"{_NAME}\s*=\s*[^;={{}}\x01]*(?:\b(?:label|text)\s*=\s*)?$|\bQ\w+\s+\*?(\w+)\s*\([^;\x01]*$")
"""What stands before a label that a variable is made with."""
_METHOD = re.compile(
    rf"(?:->|\.)\s*(?:(setToolTip|setStatusTip|setWhatsThis|SetToolTip|set_tooltip_text|set_tooltip_markup"
    rf"|set_tooltip|setTooltip|"
    rf"SetHelpText|setShortHelp|SetShortHelp|setHelp|setToolTipText)|setText|setTitle|setLabel|setIconText"
    rf"|SetLabel|set_label|"
    rf"set_text|set_title|set_text_with_mnemonic|set_label_text)\s*\(\s*{M}"
)
_FUNCTION = re.compile(
    rf"\b(?:(gtk_widget_set_tooltip_(?:text|markup)|ui_set_tooltip|set_tooltip|gtk_tool_item_set_tooltip_text"
    rf"|set_tip|"
    rf"gtk_tooltips_set_tip)|gtk_(?:button|label|menu_item|tool_button|check_button)_set_(?:label|text"
    rf"|text_with_mnemonic)|"
    rf"dt_bauhaus_widget_set_label)\s*\(\s*(?:[a-z]\w*\s*,\s*)?(?:\*?GTK_\w+\s*\(\s*)?\*?{_NAME}\s*\)?\s*,"
    rf"\s*(?:NULL\s*,\s*)?{M}"
)
_LABELLED = re.compile(
    rf"(?<![\w])(?:label|title|text|verbose_name|caption|displayName|bl_label|ot->name|->name|\.name|name"
    rf"|_name)['\"]?\s*[=:,]\s*{T}\s*[,;\n]"
    rf"((?:(?!\b(?:bl_label|label|verbose_name|->name|ot->name)\b|\n\s*def |\nclass )[^{{}}]){{0,420}}?)"
    rf"(?:tooltip|help_text|helptext|help|description|bl_description|tip|hint|explanation"
    rf"|_description)['\"]?\s*[=:,]\s*\(?\s*{T}"
)
_FIELD = re.compile(
    rf"(?:(?:Field|Key|Choice|Column)\w*|fields\.\w+)\(\s*{T}\s*,((?:(?!(?:Field"
    rf"|fields\.\w+)\()[^;]){{0,420}}?)\bhelp(?:_text)?\s*=\s*\(?\s*{T}"
)
"""Fields of models and forms: Django's, Tryton's and their like."""
_OPTION = re.compile(rf"\{{\s*{_TOKEN}p(\d+)\s*,\s*{T}\s*,\s*(?:OFFSET|OFF|OC|offsetof)\b")
"""FFmpeg's options."""
_GLIB = re.compile(rf"g_param_spec_\w+\s*\(\s*{_TOKEN}[mp]\d+\s*,\s*{T}\s*,\s*{T}")
_GEGL = re.compile(rf"property_\w+\s*\(\s*\w+\s*,\s*{M}((?:(?!property_)[^;]){{0,300}}?)description\s*\(\s*{M}")
_OPERATION = re.compile(rf"{_TOKEN}p(\d+)\s*,\s*{M}\s*,([^;]{{0,300}}?){_TOKEN}p(\d+)\s*,\s*{M}")
_MACROS = re.compile(rf"#\s*define\s+(\w*?)_?(LONGTEXT|LONG_TEXT|TEXT|TOOLTIP|DESC|DESCRIPTION|TITLE|LABEL)\s+{M}")
_BLENDER = re.compile(
    rf"RNA_def_\w*ui_text\s*\(\s*\w+\s*,\s*{T}\s*,\s*{T}\s*\)|RNA_def_(?:boolean|int|float|enum"
    rf"|string)\w*\s*\(\s*[\w>-]+\s*,\s*{_TOKEN}[mp]\d+[^;\x01]*?{T}\s*,\s*{T}"
)
_ENUM = re.compile(rf"\{{\s*[\w|<() ]+,\s*{_TOKEN}p\d+\s*,\s*[\w() ]+,\s*{T}\s*,\s*{T}\s*,?\s*\}}")
_PREFERENCE = re.compile(rf"prefs_register_\w+\s*\(\s*\w+\s*,\s*{_TOKEN}[mp]\d+\s*,\s*{T}\s*,\s*{T}")
_FREI0R = re.compile(rf"->name\s*=\s*{T}\s*;[^}}]{{0,120}}?->explanation\s*=\s*{T}")
_FREI0R_PLUS = re.compile(rf"register_param\s*\([^,]*,\s*{T}\s*,\s*{T}")
_PRUSA = re.compile(rf"->label\s*=\s*{M}\s*;((?:(?!->label)[^}}]){{0,500}}?)->tooltip\s*=\s*{M}")
_ENTRY = re.compile(
    rf"\{{\s*(?:\.name\s*=\s*)?{_TOKEN}[mp]\d+\s*,\s*(?:[\w() |:-]+"
    rf"|{_TOKEN}[mp]\d+)\s*,\s*{M}\s*,\s*(?:[\w() |:-]+|{_TOKEN}[mp]\d+)\s*,\s*{M}"
)
"""GtkActionEntry and its relatives: { "name", icon, N_("_Label"), accelerator, N_("tooltip")."""
_BESIDE = re.compile(rf"{M}\s*,\s*(?:\w+\s*,\s*)?{M}")
_DARKTABLE = re.compile(r"\b(\w+)\s*;[^\n]*?\$DESCRIPTION:\s*\"([^\"\n]+)\"")
_FROM_PARAMS = re.compile(r"([\w>-]+)\s*=\s*dt_bauhaus_\w+_from_params\s*\(\s*\w+\s*,\s*(?:N_\()?\"(\w+)\"")
_TIP = re.compile(
    r"tool_?tip|StatusTip|WhatsThis|HelpText|help_?text|description|ui_text|param_spec|LONGTEXT|_DESC\b"
    r"|explanation|prefs_register|"
    r"N_\(|OFFSET|hint|help\s*=|set_tip|ction",
    re.IGNORECASE,
)
"""What a file has in which there are tips."""
_NEAR = 4_000
"""Characters within which a variable is taken to be the same one."""


def in_words(name: str) -> str:
    """ "ShowLineNumbers", "show_line-numbers" as "Show line numbers"."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", re.sub(r"[-_.\s]+", " ", name)).split()
    words = [word if word.isupper() and len(word) > 1 else word.lower() for word in words]
    return " ".join(words)[:1].upper() + " ".join(words)[1:]


def _unquoted(text: str) -> str:
    return "".join(re.sub(r"^[uUfRLrb]?['\"]|['\"]$", "", found[0]) for found in _QUOTED.finditer(text))


def tokens(text: str, python: bool = False) -> tuple[str, list[str]]:
    """A source without comments, each of its strings a token; the strings that the tokens' numbers stand for."""
    strings: list[str] = []

    def keep(found: re.Match[str]) -> str:
        marked = found[1] or found[2]
        strings.append(_unquoted(marked or found[3]))
        return f"{_TOKEN}{'m' if marked else 'p'}{len(strings) - 1} "

    if not python:
        text = _COMMENT.sub(" ", text)
    return _MARKED.sub(keep, text), strings


def _variables(text: str) -> Iterator[tuple[str, str]]:
    """(label's token, tooltip's token) of variables that get both."""
    events: list[tuple[int, str, str, bool]] = []
    events += (
        (found.start(), before[1] or before[2], found[1], False)
        for found in re.finditer(M, text)
        if (before := _ASSIGNED.search(text[max(0, found.start() - 180) : found.start()]))
    )
    events += (
        (found.start(), before[1], found[2], bool(found[1]))
        for found in _METHOD.finditer(text)
        if (before := re.search(rf"{_NAME}$", text[max(0, found.start() - 60) : found.start()]))
    )
    events += ((found.start(), found[2], found[3], bool(found[1])) for found in _FUNCTION.finditer(text))
    last: dict[str, tuple[int, str]] = {}
    for at, name, token, tip in sorted(events):
        name = re.sub(r"->|::", ".", name)
        if not tip:
            last[name] = at, token
        elif name in last and at - last[name][0] < _NEAR:
            yield last[name][1], token


def code(name: str, text: str) -> Iterator[Said]:
    """(label, tooltip) pairs of one source."""
    if not _TIP.search(text):
        return
    described = dict(_DARKTABLE.findall(text)) if "$DESCRIPTION" in text else {}
    if described:
        text = _FROM_PARAMS.sub(lambda m: f'{m[1]} = f(_("{described.get(m[2], m[2].replace("_", " "))}")', text)
    text, strings = tokens(text, name.endswith(".py"))

    def said(*found: str | None) -> Said:
        one, two = [strings[int(token[2:])] for token in found if token]
        return one, two

    for pair in _variables(text):
        yield said(*pair)
    for pattern in (_GLIB, _PREFERENCE, _FREI0R, _FREI0R_PLUS, _ENTRY, _ENUM):
        for found in pattern.finditer(text):
            yield said(found[1], found[2])
    for found in _BLENDER.finditer(text):
        yield said(*(found[1], found[2]) if found[1] else (found[3], found[4]))
    for pattern in (_LABELLED, _FIELD, _GEGL, _PRUSA):
        for found in pattern.finditer(text):
            yield said(found[1], found[3])
    if "gegl_operation_class_set_keys" in text:
        for found in _OPERATION.finditer(text):
            if strings[int(found[1])] == "title" and strings[int(found[4])] == "description":
                yield said(found[2], found[5])
    for found in _OPTION.finditer(text):
        option = strings[int(found[1])]
        if len(option) > 3:
            yield in_words(option), said(found[2], found[2])[0]
    macros: dict[str, str] = {}
    for found in _MACROS.finditer(text):
        if found[2] in ("TEXT", "TITLE", "LABEL"):
            macros[found[1]] = found[3]
        elif found[1] in macros:
            yield said(macros[found[1]], found[3])
    for found in _BESIDE.finditer(text):
        one, two = said(found[1], found[2])
        if len(two) > len(one) + 8 and len(two.split()) > 3:
            yield one, two
