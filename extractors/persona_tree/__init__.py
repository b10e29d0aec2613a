"""PersonaTree (Inside Out, arXiv 2601.05171): a user's memory as a tree of short texts, edited by operations.

schema, operations, grammar, extractor and score say what a model is asked and how its answer is read; tree, executor and
store what becomes of the answer: only what the schema permits, every refusal reported, every version kept.
"""

from extractors.persona_tree.executor import Execution, execute
from extractors.persona_tree.extractor import Chunk, PersonaTreeExtractor
from extractors.persona_tree.operations import NO_OP, Kind, Operation
from extractors.persona_tree.schema import Extension, Leaf, Schema, load_schema
from extractors.persona_tree.store import TreeStore
from extractors.persona_tree.tree import PersonaTree, tree_from_json

__all__ = [
    "NO_OP",
    "Chunk",
    "Execution",
    "Extension",
    "Kind",
    "Leaf",
    "Operation",
    "PersonaTree",
    "PersonaTreeExtractor",
    "Schema",
    "TreeStore",
    "execute",
    "load_schema",
    "tree_from_json",
]
