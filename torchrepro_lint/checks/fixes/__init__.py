"""Fixes: what each rule writes instead, and the edits of text that fixes are made of.

- ``fix_program``, ``fix_partly`` and ``fix_start`` of ``seeding``; ``fix_late`` of ``late_seeding``: seed a program.
- ``fix_value`` and others of ``entropy``: replace a nondeterministic seed.
- ``written_seed`` of ``written_seed``: which seed a fix writes; ``own_seed`` of ``program_seed``, ``seed_origins`` of
  ``seed_origins``: the seed that a program has.
- ``fix_generator`` of ``generators``, ``fix_workers`` of ``worker_seeding``: pass a generator or a worker function to a
  loader.
- ``fix_switch``, ``fix_enabling`` and ``fix_workspace`` of ``switches``: set flags.
- ``IndexSelectFixes`` of ``index_select``: index instead of calling ``index_select``.
- ``SortFixes`` and ``fix_walk`` of ``ordering``: sort what has no order; ``sorting_obstacle`` of ``element_order``: whether
  elements can be sorted; ``is_followed`` of ``escapes``: whether all that is put into a container is known.
- ``checksum_edits`` of ``checksums``: a checksum instead of a hash.
- ``append_argument``, ``replace_argument`` and ``remove_argument`` of ``arguments``: edits of a call.
- ``ensure_import`` of ``import_block``, ``provide_helper`` of ``helpers``, ``insert_statement`` of ``insertions``,
  ``remove_statement`` of ``removals``, ``last_of_block`` of ``import_block``: where statements are written and taken out.
- ``edits_of_unused_imports`` of ``unused_imports``, ``outdated_comments`` of ``outdated_comments``: what goes with an edit.
- ``removal`` of ``suppression_removal``: take a suppression out of a comment.
- ``own_comments`` of ``comments``, ``in_one_cell`` of ``cells``: what belongs to a statement.
"""
