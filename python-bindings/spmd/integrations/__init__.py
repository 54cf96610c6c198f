"""Trainers of other libraries whose steps are compiled; each module needs its library."""
