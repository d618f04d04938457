"""The documentation: examples that are run, tables that are written from the program, the picture of a terminal, the site."""
