"""What an editor may tell and ask."""

from __future__ import annotations

from lsprotocol import types

from torchrepro_lint.server import messages
from torchrepro_lint.server.documents import CellText, Document, encoded, notebook_data
from torchrepro_lint.server.editor import Server, to_path
from torchrepro_lint.server.preferences import SECTION


def serve() -> None:
    """Serve one editor over standard input and output until it ends."""
    server = make_server()
    try:
        server.start_io()
    finally:
        server.end()


def make_server() -> Server:
    """A server with all that it can be asked."""
    server = Server()
    _life(server)
    _texts(server)
    _notebooks(server)
    _questions(server)
    return server


def _life(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def _(params: types.InitializeParams) -> None:
        server.given = params.initialization_options

    @server.feature(types.INITIALIZED)
    async def _(_params: types.InitializedParams) -> None:
        server.begin()
        await server.configure()
        await server.watch()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def _(params: types.DidChangeConfigurationParams) -> None:
        if isinstance(params.settings, dict) and SECTION in params.settings:
            server.given = params.settings[SECTION]
        await server.configure()

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def _(_params: types.DidChangeWorkspaceFoldersParams) -> None:
        await server.configure()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def _(_params: types.DidChangeWatchedFilesParams) -> None:
        _changed_on_disk(server)


def _texts(server: Server) -> None:
    def put(uri: str) -> None:
        path = to_path(uri)
        if path is not None and path.endswith((".py", ".pyi", ".ipynb")):
            text = server.workspace.get_text_document(uri)
            server.put(path, Document(path, encoded(text.source), uri, None, text.version))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def _(params: types.DidOpenTextDocumentParams) -> None:
        server.stale = True
        put(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def _(params: types.DidChangeTextDocumentParams) -> None:
        put(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def _(_params: types.DidSaveTextDocumentParams) -> None:
        _changed_on_disk(server)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def _(params: types.DidCloseTextDocumentParams) -> None:
        _closed(server, params.text_document.uri)


def _notebooks(server: Server) -> None:
    def put(uri: str) -> None:
        path, notebook = to_path(uri), server.workspace.get_notebook_document(notebook_uri=uri)
        if path is None or notebook is None:
            return
        texts = [server.workspace.get_text_document(cell.document) for cell in notebook.cells]
        cells = [
            CellText(cell.document, cell.kind == types.NotebookCellKind.Code, text.language_id or "python", text.source)
            for cell, text in zip(notebook.cells, texts, strict=True)
        ]
        names = tuple(cell.uri for cell in cells)
        server.put(path, Document(path, notebook_data(cells, notebook.metadata), uri, names, notebook.version))

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def _(params: types.DidOpenNotebookDocumentParams) -> None:
        server.stale = True
        put(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def _(params: types.DidChangeNotebookDocumentParams) -> None:
        put(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def _(_params: types.DidSaveNotebookDocumentParams) -> None:
        _changed_on_disk(server)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def _(params: types.DidCloseNotebookDocumentParams) -> None:
        _closed(server, params.notebook_document.uri)


def _changed_on_disk(server: Server) -> None:
    server.stale = True
    server.want()


def _closed(server: Server, uri: str) -> None:
    path = to_path(uri)
    if path is not None:
        server.stale = True
        server.put(path, None)


def _questions(server: Server) -> None:
    kinds = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, messages.FIX_ALL])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    async def _(params: types.CodeActionParams) -> list[types.CodeAction]:
        only = params.context.only
        return await server.asked(lambda answers: answers.actions(params.text_document.uri, params.range, only))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def _(params: types.HoverParams) -> types.Hover | None:
        return await server.asked(lambda answers: answers.hover(params.text_document.uri, params.position))
