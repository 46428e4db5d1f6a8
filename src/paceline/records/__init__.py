"""The contract: frozen dataclasses, all that measuring, analysing and rendering share. `storage` has their files."""
