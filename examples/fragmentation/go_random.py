"""The random numbers of Go's `math/rand`, from its first 607 words on: an additive lagged Fibonacci generator.

Which words a seed begins with is a table of Go's. `read_words` reads them for some seeds from a file; `words_of` makes
others, for runs that need not equal a published one.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, MutableSequence
from itertools import islice
from typing import Any

LONG, SHORT = 607, 273
"""A word is the sum of those that came so long before it."""
_LOW32, _LOW63, _LOW64 = 2**32 - 1, 2**63 - 1, 2**64 - 1


class GoRandom:
    """As `rand.New(rand.NewSource(seed))`, for the seed that begins with these words."""

    def __init__(self, first: Iterable[int]) -> None:
        self._words = _stream(list(first))

    def skip(self, words: int) -> None:
        for _ in islice(self._words, words):
            pass

    def below(self, limit: int) -> int:
        """`Int31n`: a whole number from 0 to the limit, which it does not reach."""
        if limit & (limit - 1) == 0:
            return self._word31() & (limit - 1)
        most = 2**31 - 1 - 2**31 % limit
        while (word := self._word31()) > most:
            pass
        return word % limit

    def shuffle(self, items: MutableSequence[Any]) -> None:
        for last in range(len(items) - 1, 0, -1):
            other = self._scaled(last + 1)
            items[last], items[other] = items[other], items[last]

    def permutation(self, count: int) -> list[int]:
        """`Perm`."""
        made = [0] * count
        for place in range(count):
            other = self.below(place + 1)
            made[place] = made[other]
            made[other] = place
        return made

    def _word31(self) -> int:
        return (next(self._words) & _LOW63) >> 32

    def _word32(self) -> int:
        return (next(self._words) & _LOW63) >> 31 & _LOW32

    def _scaled(self, limit: int) -> int:
        """The unexported `int31n`: by a multiplication instead of a division."""
        product = self._word32() * limit
        if product & _LOW32 < limit:
            least = (2**32 - limit) % limit
            while product & _LOW32 < least:
                product = self._word32() * limit
        return product >> 32


def _stream(words: list[int]) -> Iterator[int]:
    yield from words
    place = 0
    while True:
        # The list is a ring: this place has the word that came LONG before.
        words[place] = word = (words[place] + words[place - SHORT]) & _LOW64
        yield word
        place = (place + 1) % LONG


def words_of(seed: int) -> list[int]:
    """Words to begin with, by a generator of Python's."""
    generator = random.Random(seed)
    return [generator.getrandbits(64) for _ in range(LONG)]


def read_words(lines: Iterable[str]) -> dict[int, list[int]]:
    """By seed: a line has the seed and the words, in hexadecimal."""
    read = {}
    for line in lines:
        seed, *words = line.split()
        if len(words) != LONG:
            raise ValueError(f"seed {seed} has {len(words)} words, {LONG} are needed")
        read[int(seed)] = [int(word, 16) for word in words]
    return read
