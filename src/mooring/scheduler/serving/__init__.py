"""What the scheduler serves over HTTPS: health, metrics and configuration.

Runs on a thread of its own, so that a long computation never delays a health probe.
"""

from mooring.scheduler.serving.access import Access
from mooring.scheduler.serving.health import Health
from mooring.scheduler.serving.pages import Page, Pages, ZPage, flagz, statusz
from mooring.scheduler.serving.server import DEFAULT_PORT, SecureServer, ServingOptions
from mooring.scheduler.serving.users import NotAuthorized, Unauthenticated, Undecided, User

__all__ = [
    "DEFAULT_PORT",
    "Access",
    "Health",
    "NotAuthorized",
    "Page",
    "Pages",
    "SecureServer",
    "ServingOptions",
    "Unauthenticated",
    "Undecided",
    "User",
    "ZPage",
    "flagz",
    "statusz",
]
