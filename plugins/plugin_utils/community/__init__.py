"""Recipes of two other projects made into recipes of this one, with a report of every part."""
