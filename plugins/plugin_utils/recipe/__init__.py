"""How one model is served: recipes, and the unit that each rank starts."""
