"""A regular expression as a machine that follows all ways to match at once.

Time grows with the length of the text times the size of the pattern, whatever the pattern is. Threads are kept in the
order of preference, so that the match is the one a backtracking engine would have found first.
"""

from __future__ import annotations

from bisect import bisect_right

from mooring.cel.regex_syntax import BadPattern, Chars, Choice, Place, Repeat, Sequence, Tree, folded

_LARGEST_PROGRAM = 50_000


class _Set:
    """A character set to look up in."""

    def __init__(self, chars: Chars) -> None:
        ranges = folded(chars.ranges) if chars.fold else chars.ranges
        self.edges = [edge for low, high in ranges for edge in (low, high + 1)]

    def __contains__(self, point: int) -> bool:
        return bisect_right(self.edges, point) % 2 == 1


class Machine:
    """A program of steps: take a character, be at a place, go on at one or at either of two."""

    def __init__(self, tree: Tree) -> None:
        self._steps: list[tuple[str, object, int, int]] = []
        self._emit(tree)
        self._add("match", None)

    def _add(self, kind: str, what: object, first: int = -1, second: int = -1) -> int:
        if len(self._steps) >= _LARGEST_PROGRAM:
            raise BadPattern("expression too large", "")
        self._steps.append((kind, what, first, second))
        return len(self._steps) - 1

    def _emit(self, tree: Tree) -> None:
        match tree:
            case Chars():
                self._add("take", _Set(tree))
            case Place():
                self._add("place", tree.kind)
            case Sequence():
                for each in tree.parts:
                    self._emit(each)
            case Choice():
                self._emit_choice(tree)
            case Repeat():
                self._emit_repeat(tree)

    def _fork(self, at: int, first: int, second: int, *, greedy: bool = True) -> None:
        self._steps[at] = ("fork", None, first, second) if greedy else ("fork", None, second, first)

    def _emit_choice(self, tree: Choice) -> None:
        ends: list[int] = []
        for branch in tree.branches[:-1]:
            fork = self._add("fork", None)
            self._emit(branch)
            ends.append(self._add("go", None))
            self._fork(fork, fork + 1, len(self._steps))
        self._emit(tree.branches[-1])
        for end in ends:
            self._steps[end] = ("go", None, len(self._steps), -1)

    def _emit_repeat(self, tree: Repeat) -> None:
        for _ in range(tree.least):
            self._emit(tree.of)
        if tree.most is None:
            fork = self._add("fork", None)
            self._emit(tree.of)
            self._add("go", None, fork)
            self._fork(fork, fork + 1, len(self._steps), greedy=tree.greedy)
            return
        forks: list[int] = []
        for _ in range(tree.most - tree.least):
            forks.append(self._add("fork", None))
            self._emit(tree.of)
        for fork in forks:
            self._fork(fork, fork + 1, len(self._steps), greedy=tree.greedy)

    def search(self, text: str, start: int) -> tuple[int, int] | None:
        """The leftmost match from `start` on, and of those the preferred one."""
        threads: dict[int, int] = {}
        found: tuple[int, int] | None = None
        for at in range(start, len(text) + 1):
            if found is None:
                self._follow(threads, 0, at, text, at)
            following: dict[int, int] = {}
            point = ord(text[at]) if at < len(text) else -1
            for step, began in threads.items():
                kind, what, _, _ = self._steps[step]
                if kind == "match":
                    found = (began, at)
                    break  # whatever comes behind is less preferred
                if point >= 0 and point in what:  # type: ignore[operator]
                    self._follow(following, step + 1, began, text, at + 1)
            threads = following
            if not threads and found is not None:
                break
        return found

    def _follow(self, threads: dict[int, int], step: int, began: int, text: str, at: int) -> None:
        """Adds the steps at which something is to be decided, in order of preference."""
        pending = [step]
        visited: set[int] = set()
        while pending:
            step = pending.pop()
            if step in threads or step in visited:
                continue
            kind, what, first, second = self._steps[step]
            if kind in ("take", "match"):
                threads[step] = began
                continue
            visited.add(step)
            if kind == "fork":
                pending += [second, first]
            elif kind == "go":
                pending.append(first)
            elif _is_at(str(what), text, at):
                pending.append(step + 1)


def _is_at(kind: str, text: str, at: int) -> bool:
    if kind == "A":
        return at == 0
    if kind == "z":
        return at == len(text)
    if kind == "^":
        return at == 0 or text[at - 1] == "\n"
    if kind == "$":
        return at == len(text) or text[at] == "\n"
    boundary = (at > 0 and _is_word(text[at - 1])) != (at < len(text) and _is_word(text[at]))
    return boundary if kind == "b" else not boundary


def _is_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")
