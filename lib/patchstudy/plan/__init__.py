"""How many units a study needs, where to spend them, and in which order to measure.

From a pilot (any study, or two sets of raw files) or from a given spread. Nothing here
says with which power a finished study was made: power is for plans (Hoenig and Heisey
2001, "The abuse of power").
"""

from patchstudy.plan.campaign import (
    DEFAULT_UNITS,
    Campaign,
    Plan,
    make,
    of_pilot,
    of_spread,
)
from patchstudy.plan.needs import PROBLEMS, Given, Goal, Need, Spread, Wish
from patchstudy.plan.order import Order, Shape, Slot, schedule

__all__ = [
    "DEFAULT_UNITS",
    "PROBLEMS",
    "Campaign",
    "Given",
    "Goal",
    "Need",
    "Order",
    "Plan",
    "Shape",
    "Slot",
    "Spread",
    "Wish",
    "make",
    "of_pilot",
    "of_spread",
    "schedule",
]
