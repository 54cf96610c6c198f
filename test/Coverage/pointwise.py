"""Elementwise arithmetic, comparisons, casts."""
from samples import from_database

OPS = [from_database(name) for name in (
    "abs", "add", "sub", "mul", "div.no_rounding_mode", "exp", "log", "sin", "tanh", "maximum", "where", "eq")]
