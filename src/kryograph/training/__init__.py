"""How networks are trained, when that stops, and how the result is scored."""
