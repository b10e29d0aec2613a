"""Memories as they lie on the disk, and what people do with them."""
