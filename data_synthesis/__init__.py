"""Supervision: corpora, the simulated persona world, teacher synthesis, and the card that every dataset folder carries."""
