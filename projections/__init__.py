"""The read side: what the service would remember, why each other event is not in it, and views that are kept."""

from projections.live import Live
from projections.partition import Applied, Told
from projections.projection import REFOLD, Add, Change, Drop, Projection, Push, Put
from projections.projector import Projector
from projections.verifying import Verifying
from projections.views.built_in import BUILT_IN

__all__ = [
    "BUILT_IN",
    "REFOLD",
    "Add",
    "Applied",
    "Change",
    "Drop",
    "Live",
    "Projection",
    "Projector",
    "Push",
    "Put",
    "Told",
    "Verifying",
]
