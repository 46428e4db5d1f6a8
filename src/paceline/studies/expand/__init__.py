"""A Study becomes points, each with the choices of its recipe. Pure."""
