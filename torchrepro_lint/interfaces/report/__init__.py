"""How findings are written down: one small module per format, each with ``render``."""
