"""The program of a rank as Python objects (docs/passes.md)."""
from .program import Block, Operation, Program, State, TensorType, Unit, Value, read_program
from .text import Attribute

__all__ = ["Attribute", "Block", "Operation", "Program", "State", "TensorType", "Unit", "Value", "read_program"]
