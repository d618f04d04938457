"""The engine of a run: read, partition, schedule, check, fix, verify and write.

- ``run``, ``run_with_states``, ``prepare``, ``report_on`` of ``run``: a whole run; the rules on one linked project
- ``RunOutcome``, ``Diagnostic`` of ``diagnostic``: what a run found
- ``plan`` of ``import_closure``: the files of a run, and what they import where no whole folder is taken
- ``read_tree``, ``ReadOptions`` of ``read_project``: all files of a project, parsed or from the cache
- ``parse_bytes``, ``ParsedFile`` of ``parsed_file``: one file, parsed
- ``Partition``, ``check_tree`` of ``partition``: the connected components of a project, and the scheduler that checks them
- ``LinkedProject`` of ``incremental_project``: a project under edit, analysed incrementally
- ``make_checker``, ``check``, ``Checker``, ``CheckResult`` of ``checker``: the rules on one file
- ``fix_tree``, ``FixResult`` of ``fixer``: the fix loop and fix verification
- ``write_all``, ``write_atomically``, ``FileChange`` of ``writing``: atomic file writes
- ``Baseline``, ``load_baseline``, ``compare_with_baseline``, ``save_baseline`` of ``diagnostic``: known findings
- ``Session``, ``RepeatedRun`` of ``session``: findings file by file, for a plugin; a run that is repeated in memory after each change
- ``find_error_sites`` of ``error_sites``: calls that may raise an error of torch
- ``deadline`` of ``limits`` and ``cores`` of ``process_pool``: the time limit of a piece of work; the number of processes
- ``store``: what is kept in the cache directory
"""
