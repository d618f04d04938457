"""The language server: what the command line reports, while the files are being edited."""
