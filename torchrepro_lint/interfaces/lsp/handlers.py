"""The LSP methods that the server handles: a handler is registered for each request and notification."""

from __future__ import annotations

import gc
import logging
import sys
from typing import BinaryIO, cast

from lsprotocol import types

from torchrepro_lint.interfaces.lsp import messages
from torchrepro_lint.interfaces.lsp.server import MessageReader, Server, to_path
from torchrepro_lint.interfaces.lsp.workspace import SECTION, Document, encode_text, notebook_data


def serve() -> int:
    """Serve one editor over standard input and output until it ends; the exit status that the protocol asks for."""
    # The log of pygls would go to standard error, which editors show as an error of the server.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    # Python would collect cycles after a check, before its diagnostics are published: see ``Workspace.release``.
    gc.disable()
    server = make_server()
    try:
        server.start_io(cast("BinaryIO", MessageReader(sys.stdin.buffer)))
    finally:
        server.end()
    return 0 if server.shut_down else 1


def make_server() -> Server:
    """A server with a handler for each method."""
    server = Server()
    _lifecycle(server)
    _file_operations(server)
    _text_documents(server)
    _notebooks(server)
    _language_features(server)
    return server


def _lifecycle(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def _(params: types.InitializeParams) -> None:
        server.sent_settings = params.initialization_options
        encoding = server.workspace.position_encoding
        if encoding is not None:
            server.texts.encoding = types.PositionEncodingKind(encoding).value

    @server.feature(types.INITIALIZED)
    async def _(_params: types.InitializedParams) -> None:
        await server.start_reporting()

    @server.feature(types.SHUTDOWN)
    def _(_params: None) -> None:
        server.shut_down = True

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def _(params: types.DidChangeConfigurationParams) -> None:
        if isinstance(params.settings, dict) and SECTION in params.settings:
            server.sent_settings = params.settings[SECTION]
        await server.configure()

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def _(_params: types.DidChangeWorkspaceFoldersParams) -> None:
        await server.configure()


def _file_operations(server: Server) -> None:
    """File operations of the editor: watchers are not notified of every file of a folder that is moved or deleted."""
    filters = [types.FileOperationFilter(types.FileOperationPattern("**"), scheme="file")]
    options = types.FileOperationRegistrationOptions(filters)

    @server.feature(types.WORKSPACE_DID_RENAME_FILES, options)
    def _(_params: types.RenameFilesParams) -> None:
        server.files_changed()

    @server.feature(types.WORKSPACE_DID_DELETE_FILES, options)
    def _(_params: types.DeleteFilesParams) -> None:
        server.files_changed()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def _(_params: types.DidChangeWatchedFilesParams) -> None:
        server.files_changed()


def _text_documents(server: Server) -> None:
    def put(uri: str) -> None:
        path, text = to_path(uri), server.texts.text(uri)
        if path is not None and text is not None and path.endswith((".py", ".pyi", ".ipynb")):
            server.update_document(path, Document(path, encode_text(text.text), text.uri, None, text.version))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def _(params: types.DidOpenTextDocumentParams) -> None:
        server.texts.open(params.text_document)
        server.files_changed()
        put(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def _(params: types.DidChangeTextDocumentParams) -> None:
        server.texts.change(params.text_document, params.content_changes)
        put(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def _(_params: types.DidSaveTextDocumentParams) -> None:
        server.files_changed()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def _(params: types.DidCloseTextDocumentParams) -> None:
        server.texts.close(params.text_document.uri)
        _closed(server, params.text_document.uri)


def _notebooks(server: Server) -> None:
    def put(uri: str) -> None:
        path, notebook = to_path(uri), server.texts.notebook(uri)
        if path is None or notebook is None:
            return
        cells = list(server.texts.cells(notebook))
        names = tuple(cell.uri for cell in cells)
        data = notebook_data(cells, notebook.metadata)
        server.update_document(path, Document(path, data, notebook.uri, names, notebook.version))

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def _(params: types.DidOpenNotebookDocumentParams) -> None:
        server.texts.open_notebook(params)
        server.files_changed()
        put(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def _(params: types.DidChangeNotebookDocumentParams) -> None:
        server.texts.change_notebook(params)
        put(params.notebook_document.uri)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def _(_params: types.DidSaveNotebookDocumentParams) -> None:
        server.files_changed()

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def _(params: types.DidCloseNotebookDocumentParams) -> None:
        server.texts.close_notebook(params)
        _closed(server, params.notebook_document.uri)


def _closed(server: Server, uri: str) -> None:
    path = to_path(uri)
    if path is not None:
        server.update_document(path, None)
        server.files_changed()


def _language_features(server: Server) -> None:
    kinds = [types.CodeActionKind.QuickFix, messages.FIX_ALL]
    options = types.CodeActionOptions(code_action_kinds=kinds, resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    async def _(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        return await server.answer(lambda answers: answers.actions(uri, params.range, params.context))

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def _(action: types.CodeAction) -> types.CodeAction:
        return await server.answer(lambda answers: answers.resolve(action))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def _(params: types.HoverParams) -> types.Hover | None:
        return await server.answer(lambda answers: answers.hover(params.text_document.uri, params.position))
