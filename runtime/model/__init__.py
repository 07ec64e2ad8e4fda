"""Tables of a system, filled in by the generated modules, and the values in them."""
