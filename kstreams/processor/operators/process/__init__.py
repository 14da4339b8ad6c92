"""The user's own processors and transformers as operators."""
