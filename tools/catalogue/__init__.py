"""The catalogue's generator: tables of documented operations from torch's own documentation (``python -m
tools.catalogue``).
"""
