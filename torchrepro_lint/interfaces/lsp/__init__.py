"""The language server: the same diagnostics and fixes as the command line, while files are being edited.

It speaks the Language Server Protocol (LSP) through pygls. The public function is ``serve`` of ``service``. Inside:

- ``Server`` of ``editor``: the state of one connection; hands document changes to the workspace, publishes diagnostics.
- ``Workspace`` of ``workspace``: the open documents and their projects, without a word of the protocol.
- ``LinkedProject`` of ``linked``: a project analysed incrementally; reads again only what changed.
- ``LanguageFeatures`` of ``answers``: diagnostics, hover and code actions of a document, as LSP types.
- ``Client`` of ``counterpart``: the editor's capabilities, and requests and notifications to it.
- ``OpenTexts``, ``PositionMapper`` of ``texts``: texts as the editor has them, and offsets as LSP positions.
"""
