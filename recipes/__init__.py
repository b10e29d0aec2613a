"""Recipes: the YAML files, and the strict loader that reads them without importing torch."""
