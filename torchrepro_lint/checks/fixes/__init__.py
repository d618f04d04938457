"""Rewrites that are more than an edit or two: what a fix puts in place of a call."""
