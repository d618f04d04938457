"""Source text without Python semantics: decoding, lines, spans, edits, notebooks, suppression comments, and bounded reading of files.

- ``decode``, ``encode``, ``with_edits``, ``Source``, ``SourceProblem`` of ``decoding``: bytes to text and back
- ``Span``, ``Position``, ``Cell``, ``Edit``, ``Fix``, ``Lines``, ``lines_of`` of ``text``: places in a text, and changes to it
- ``apply_edits``, ``merge``, ``join_insertions``, ``map_offset``, ``changed_files`` of ``text``: how edits combine
- ``Message``, ``Reference``, ``with_paths`` of ``text``: texts for people that know which lines of files they name
- ``read_notebook``, ``fit_to_cells``, ``notebook_with_edits``, ``Notebook`` of ``decoding``: a notebook as one program
- ``read_cells``, ``replace_sources``, ``NotebookError`` of ``notebooks``: code cells in a notebook's JSON
- ``parse``, ``literal`` of ``text``: Python's own parser, without its warnings
- ``neutralised`` of ``notebooks``: IPython syntax made harmless
- ``suppressions``, ``joined_rows``, ``noqa_edit`` of ``suppressions``: ``# noqa`` and ``# torchrepro: ignore`` comments
- ``read_program``, ``read_settings``, ``read_manifest``, ``read_requirements``, ``read_gitignore``, ``read_named_file``,
  ``read_bounded``, ``TooLarge`` of ``files``: bounded reading
- ``is_notebook`` of ``files``: a notebook by its name
- ``file_signature``, ``FileSignature``, ``unchanged``, ``digest`` of ``files``: whether a file has changed
- ``load_toml``, ``parse_toml``, ``read_table``, ``rules_dir``, ``documented_versions``, ``release`` of ``files``: TOML, shipped tables
- ``parse_gitignore_line``, ``wildcard_expression``, ``sequence_with_gaps``, ``split_at_gaps`` of ``patterns``: linear-time wildcards, regular expressions compiled late
- ``join_path``, ``parent_folders``, ``top_folders`` of ``files``: arithmetic on paths below a root
- ``UsageError``, ``Fault`` of ``errors``: what goes wrong, as values
- ``escaped``, ``escaped_message``, ``escaped_path``, ``escaped_line``, ``without_workflow_commands`` of ``errors``: untrusted text on one line
"""
