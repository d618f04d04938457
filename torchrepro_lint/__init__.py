"""Static analyser that finds and fixes what makes PyTorch training irreproducible, without running it."""

__version__ = "0.1.0"
