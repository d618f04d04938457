"""Fixes: what each rule writes instead, and the edits of text that fixes are made of.

- ``fix_program``, ``fix_partly`` and ``fix_start`` of ``seeding``; ``fix_late`` of ``late_seeding``: seed a program.
- ``fix_value`` and others of ``entropy``: replace a nondeterministic seed.
- ``seed_at`` of ``program_seed``: the program's own seed at a place.
- ``fix_generator`` and ``fix_workers`` of ``generators``: pass a generator or a worker function to a loader.
- ``fix_switch``, ``fix_enabling`` and ``fix_workspace`` of ``switches``: set flags.
- ``IndexSelectFixes`` of ``index_select``: index instead of calling ``index_select``.
- ``SortFixes`` and ``fix_walk`` of ``ordering``: sort what has no order.
- ``checksum_edits`` of ``checksums``: a checksum instead of a hash.
- ``append_argument``, ``replace_argument`` and ``remove_argument`` of ``arguments``: edits of a call.
- ``ensure_import`` of ``insertions``, ``provide_helper`` of ``helpers``, ``insert_statement`` of ``insertions``,
  ``remove_statement`` of ``removals``, ``last_of_block`` of ``import_block``: where statements are written and taken out.
- ``edits_of_unused_imports`` of ``unused_imports``, ``outdated_comments`` of ``outdated_comments``: what goes with an edit.
- ``own_comments`` of ``comments``, ``in_one_cell`` of ``cells``: what belongs to a statement.
"""
