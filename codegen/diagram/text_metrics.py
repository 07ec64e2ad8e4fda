"""Text width without a font: an estimate that is wide enough for every usual system font."""

STATE_SIZE = 14.0
NAME_SIZE = 13.0
NOTE_SIZE = 11.0
TITLE_SIZE = 15.0

_NARROW = frozenset("iljtfrI.,:;'|!()[]{} ")
_WIDE = frozenset("mwMW@%")


def measure_text(text: str, size: float) -> float:
    """Estimate the width of `text` in a semibold sans-serif font of the given size."""
    return sum(_measure_character(character) for character in text) * size / 100


def _measure_character(character: str) -> int:
    """Estimate a character's width in hundredths of the font size; sums of integers are exact everywhere."""
    if character in _NARROW:
        return 40
    if character in _WIDE:
        return 96
    if ord(character) > 0x2E7F:
        return 108
    return 74 if character.isupper() else 63
