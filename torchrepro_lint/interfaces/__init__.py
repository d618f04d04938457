"""Interfaces: how a user, a shell, an editor or flake8 starts a run and reads its diagnostics.

``cli`` is the command line, ``lsp`` the language server, ``report`` the output formats, ``overview`` the model of the page
that ``torchrepro-lint report`` writes, ``survey`` the same for many repositories, and ``flake8_plugin`` the adapter to flake8.
"""
