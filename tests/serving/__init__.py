"""Serving for real: a vLLM for CPUs, a model made on the spot, and the recipes that serve it over container hosts."""
