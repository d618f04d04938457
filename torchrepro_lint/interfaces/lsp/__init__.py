"""The language server: the same diagnostics and fixes as the command line, while files are being edited.

It speaks the Language Server Protocol (LSP) through pygls. The public function is ``serve`` of ``handlers``. Inside:

- ``Server`` of ``server``: the state of one connection; hands document changes to the workspace, publishes diagnostics.
- ``Workspace``, ``Document``, ``Preferences`` of ``workspace``: the open documents, their projects and settings, without a word of the
  protocol.
- ``LanguageFeatures`` of ``language_features``: diagnostics, hover and code actions of a document, as LSP types.
- ``hover_text`` of ``language_features``: the text of a hover.
- ``Client`` of ``client``: the editor's capabilities, and requests and notifications to it.
- ``OpenTexts``, ``PositionMapper`` of ``text_documents``: texts as the editor has them, and offsets as LSP positions.
"""
