"""Trainers of other libraries whose steps are compiled: of Hugging Face (transformers.py)."""
