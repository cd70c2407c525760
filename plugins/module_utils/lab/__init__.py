"""The virtual ring: virtual hosts, their cables and what serves them, on one machine.

Standard library only, Python >= 3.11. Needs root; everything lives in one network namespace.
"""
