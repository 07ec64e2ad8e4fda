"""The fuzz corpus, whole, byte by byte and mutated: no fault, no hang, and nothing left behind."""

from __future__ import annotations

import itertools
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from tests.runtime.transport.grpc.direct.fuzz.fuzz_harness import feed_client, feed_server
from tests.runtime.transport.grpc.direct.fuzz.make_corpus import FOLDER, make_seeds
from tests.runtime.transport.grpc.direct.support.raw_peer import PREFACE
from tests.support.deep import DEEP

Feed = Callable[[Iterable[bytes]], Awaitable[Any]]
MUTATIONS = 500 if DEEP else 6
SEEDS = {path.name: path.read_bytes() for path in sorted(FOLDER.glob("*.bin"))}
SIDES = pytest.mark.parametrize("feed", [feed_server, feed_client], ids=["server", "client"])


def test_the_corpus_is_that_of_its_script() -> None:
    """`python -m tests.runtime.transport.grpc.direct.fuzz.make_corpus` writes it again; seeds are small."""
    assert make_seeds() == SEEDS
    assert len(SEEDS) >= 60
    assert max(map(len, SEEDS.values())) < 1000


@SIDES
@pytest.mark.parametrize("name", SEEDS)
async def test_a_seed_does_no_harm(name: str, feed: Feed) -> None:
    """In one piece, and in pieces of a byte."""
    data = adapt_preface(SEEDS[name], feed)
    await feed([data])
    await feed(data[at : at + 1] for at in range(len(data)))


@SIDES
@pytest.mark.parametrize("name", SEEDS)
async def test_a_mutated_seed_does_no_harm(name: str, feed: Feed) -> None:
    """Bits, bytes, frame headers and parts of other seeds, by numbers that are the same in each run."""
    for number in range(MUTATIONS):
        chance = random.Random(f"{name} {number}")
        data = bytearray(SEEDS[name])
        for _ in range(chance.randint(1, 4)):
            chance.choice(WAYS)(data, chance)
        await feed(cut(adapt_preface(bytes(data), feed), chance))


def adapt_preface(data: bytes, feed: Feed) -> bytes:
    """The data without the preface that only a client sends, or with it: else both sides would stop there."""
    if feed is feed_client:
        return data.removeprefix(PREFACE)
    return data if data.startswith(PREFACE[:3]) else PREFACE + data


def cut(data: bytes, chance: random.Random) -> list[bytes]:
    """The data in a few pieces."""
    places = sorted({0, len(data), *(chance.randint(0, len(data)) for _ in range(chance.randint(0, 3)))})
    return [data[begin:end] for begin, end in itertools.pairwise(places)]


def flip_bit(data: bytearray, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def replace_byte(data: bytearray, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))


def remove_part(data: bytearray, chance: random.Random) -> None:
    begin = chance.randint(0, len(data))
    del data[begin : begin + chance.randint(1, 20)]


def repeat_part(data: bytearray, chance: random.Random) -> None:
    begin = chance.randint(0, len(data))
    data[begin:begin] = data[begin : begin + chance.randint(1, 60)] * chance.randint(1, 5)


def insert_noise(data: bytearray, chance: random.Random) -> None:
    begin = chance.randint(0, len(data))
    data[begin:begin] = chance.randbytes(chance.randint(1, 12))


def truncate(data: bytearray, chance: random.Random) -> None:
    del data[chance.randint(0, len(data)) :]


def splice_seed(data: bytearray, chance: random.Random) -> None:
    """The frames of another seed behind some frames of this one."""
    other = SEEDS[chance.choice(list(SEEDS))]
    data[chance.choice(find_frames(data)) :] = other[chance.choice(find_frames(other)) :]


def change_frame(data: bytearray, chance: random.Random) -> None:
    """A field of a frame header: its length, type, flags or stream."""
    places = [each for each in find_frames(data) if each + 9 <= len(data)]
    if places:
        begin = chance.choice(places)
        field = chance.choice(((2, 3), (3, 4), (4, 5), (5, 9), (8, 9)))
        for at in range(begin + field[0], begin + field[1]):
            data[at] = chance.choice((0, 1, 3, 4, 5, 8, 9, chance.randrange(256)))


def find_frames(data: bytes | bytearray) -> list[int]:
    """The offsets of frames, by their lengths."""
    place = 24 if data.startswith(b"PRI") else 0
    places = [place]
    while place + 9 <= len(data):
        place += 9 + int.from_bytes(data[place : place + 3], "big")
        if place <= len(data):
            places.append(place)
    return [min(each, len(data)) for each in places]


WAYS = (
    *(flip_bit, replace_byte, remove_part, repeat_part, insert_noise, truncate, splice_seed),
    *(change_frame, change_frame, change_frame),
)
