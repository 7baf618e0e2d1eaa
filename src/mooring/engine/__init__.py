"""Runs a profile's plugins over the state: `decide`, and what follows a decision in memory (reserve, permit)."""

from mooring.engine.cycle import EngineCycle
from mooring.engine.decision import Decision
from mooring.engine.decision_cache import DecisionCache
from mooring.engine.explanations import explanations
from mooring.engine.extender_results import EXTENDER, ExtenderResults, ExtenderScores
from mooring.engine.filtering import Feasible, feasible
from mooring.engine.pipeline import Decide, choose, decide, fail, refuse
from mooring.engine.plugin_call import calling
from mooring.engine.plugin_scores import Score
from mooring.engine.profile import Form, Profile
from mooring.engine.rejected import Rejectors
from mooring.engine.reservation import Permitted, PlacementRefused, permit, reserve, unreserve
from mooring.engine.scoring import ScoreColumns

__all__ = [
    "EXTENDER",
    "Decide",
    "Decision",
    "DecisionCache",
    "EngineCycle",
    "ExtenderResults",
    "ExtenderScores",
    "Feasible",
    "Form",
    "Permitted",
    "PlacementRefused",
    "Profile",
    "Rejectors",
    "Score",
    "ScoreColumns",
    "calling",
    "choose",
    "decide",
    "explanations",
    "fail",
    "feasible",
    "permit",
    "refuse",
    "reserve",
    "unreserve",
]
