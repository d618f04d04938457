"""What is run by hand on the repository, outside the wheel."""
