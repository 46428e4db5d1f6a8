"""Built-in models, and the one place where a model is made from settings."""
