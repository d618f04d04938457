"""Write the catalogue of documented operations from torch's own documentation: ``python -m tools.catalogue``."""
