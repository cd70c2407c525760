"""Rings on the controller: from inventory and bindings to the plan, its proof and its files."""
