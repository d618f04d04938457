"""Scripts that are run by hand on the repository, outside the wheel."""
