"""Estimates how wide a text is drawn, without a font: generous enough for every usual system font."""

STATE_SIZE = 14.0
NAME_SIZE = 13.0
NOTE_SIZE = 11.0
TITLE_SIZE = 15.0

_NARROW = frozenset("iljtfrI.,:;'|!()[]{} ")
_WIDE = frozenset("mwMW@%")


def text_width(text: str, size: float) -> float:
    """The width of `text` in a semibold sans-serif font of the given size."""
    return sum(_hundredths(character) for character in text) * size / 100


def _hundredths(character: str) -> int:
    """A character's width in hundredths of the font size; integers add up alike on every machine."""
    if character in _NARROW:
        return 40
    if character in _WIDE:
        return 96
    if ord(character) > 0x2E7F:
        return 108
    return 74 if character.isupper() else 63
