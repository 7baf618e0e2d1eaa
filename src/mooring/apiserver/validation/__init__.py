"""Checks of documents: names, metadata, typed schemas and the rules of single kinds."""
