"""Runs a profile's plugins over the state: `decide`, and what follows a decision in memory (reserve, permit)."""

from mooring.engine.asking import asking
from mooring.engine.choose import Score, ScoreColumns
from mooring.engine.cycle import EngineCycle
from mooring.engine.decide import choose, decide, fail, refuse
from mooring.engine.decision import Decision
from mooring.engine.feasible import Feasible, feasible
from mooring.engine.heard import EXTENDER, Heard, HeardScores
from mooring.engine.profile import Form, Profile
from mooring.engine.rejected import Rejectors
from mooring.engine.reservation import Permitted, Refused, permit, reserve, unreserve

__all__ = [
    "EXTENDER",
    "Decision",
    "EngineCycle",
    "Feasible",
    "Form",
    "Heard",
    "HeardScores",
    "Permitted",
    "Profile",
    "Refused",
    "Rejectors",
    "Score",
    "ScoreColumns",
    "asking",
    "choose",
    "decide",
    "fail",
    "feasible",
    "permit",
    "refuse",
    "reserve",
    "unreserve",
]
