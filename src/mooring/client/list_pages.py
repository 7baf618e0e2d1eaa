"""The pages of a list, to their end: a server whose `continue` never ends is given up."""

from __future__ import annotations

from mooring.base.errors import ApiError
from mooring.objects.meta import Kind

MOST_PAGES = 50_000
"""Of 500 objects: more than an API server has."""
MOST_EMPTY = 100
"""Pages in a row. One may be empty: where a server filters objects after it has read them."""


class ListPages:
    """Counts the pages of one list."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._token = ""
        self._pages = self._empty = 0

    def follow(self, items: int, token: str) -> str:
        """The `continue` of a page with so many items; "" at the end. Raises ApiError where there is none."""
        self._pages += 1
        self._empty = 0 if items else self._empty + 1
        if token and (token == self._token or self._pages >= MOST_PAGES or self._empty >= MOST_EMPTY):
            raise ApiError(
                200,
                "NotAnApiServer",
                f"the list of {self._kind.name} does not end: its `continue` leads on after {self._pages:,} pages, "
                f"{self._empty:,} of them empty at the end; the server, or a proxy before it, does not respond like an "
                "API server",
            )
        self._token = token
        return token
