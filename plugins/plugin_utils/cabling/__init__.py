"""Cabling: which cables join which ports, the layout and host order they make, and what is plugged wrongly.

Pure and independent of the order of its input: surveys in, findings out.
"""

from .declared import contradictions
from .discovery import Discovery, discover
from .evidence import Cable, End, PortView
from .page import gate, shown
from .shape import Move

__all__ = ["Cable", "Discovery", "End", "Move", "PortView", "contradictions", "discover", "gate", "shown"]
