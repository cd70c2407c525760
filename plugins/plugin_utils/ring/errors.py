"""The one way in which the planner refuses."""

from __future__ import annotations


class RingError(Exception):
    """One sentence: what is wrong, where, and what to do."""
