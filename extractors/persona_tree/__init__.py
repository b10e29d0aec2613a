"""PersonaTree (Inside Out, arXiv 2601.05171): a user's memory as a tree of short texts, edited by operations."""

from extractors.persona_tree.extractor import Chunk, PersonaTreeExtractor
from extractors.persona_tree.operations import NO_OP, Kind, Operation
from extractors.persona_tree.schema import Extension, Leaf, Schema, load_schema

__all__ = ["NO_OP", "Chunk", "Extension", "Kind", "Leaf", "Operation", "PersonaTreeExtractor", "Schema", "load_schema"]
