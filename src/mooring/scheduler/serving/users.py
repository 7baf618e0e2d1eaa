"""The user of a request in the cluster's terms, and the reasons to reject a request."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.base.errors import Fault

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"

Extra = tuple[tuple[str, tuple[str, ...]], ...]


class Unauthenticated(Fault):
    """The credentials are not valid (401)."""


class NotAuthorized(Fault):
    """The user is authenticated and not authorized (403)."""


class TooManyRequests(Fault):
    """The client causes more work than it may (429)."""

    def __init__(self) -> None:
        super().__init__("too many requests, please try again later")


class Undecided(Fault):
    """Access could not be reviewed (500)."""


@dataclass(frozen=True)
class User:
    """The user of a request. Two users are the same only if all fields are: an authoriser may look at any of it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Extra = ()

    @property
    def authenticated(self) -> User:
        """The same user, in the group of all authenticated users."""
        if AUTHENTICATED in self.groups:
            return self
        return User(self.name, (*self.groups, AUTHENTICATED), self.uid, self.extra)


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
