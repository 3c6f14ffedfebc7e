"""Text of strangers, made safe to show: one escaper for terminals, and below HTML's own for pages.

What a terminal or a reader could obey without seeing it becomes visible as an escape: control characters
(ANSI sequences begin with one), bidirectional marks and other invisible formatting (a name must not look like
another one), line separators, lone surrogates. Letters, marks, emoji and their joiners stay as they are.
"""

from unicodedata import category

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode general categories: control, format, surrogate, line and paragraph separator."""

_JOINERS = frozenset("\u200c\u200d")
"""Format characters that scripts and emoji need, and that move nothing."""

_LAYOUT = frozenset("\n\t")


def plain(text: str, *, layout: bool = False) -> str:
    """The text with everything hidden made visible; ``layout`` keeps line feeds and tabs.

    A text without hidden characters comes back unchanged, so calling it twice changes nothing.
    """
    if text.isascii() and text.isprintable():
        return text
    kept = _JOINERS | _LAYOUT if layout else _JOINERS
    return "".join(_visible(char) if _is_hidden(char) and char not in kept else char for char in text)


def one_line(text: str, width: int) -> str:
    """The text as one line of at most ``width`` characters, cut with an ellipsis."""
    line = plain(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def _is_hidden(char: str) -> bool:
    return category(char) in _HIDDEN


def _visible(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
