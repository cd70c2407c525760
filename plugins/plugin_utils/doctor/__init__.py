"""The doctor: checks with stable ids over surveys, bindings and plan of a ring; it judges and touches nothing."""
