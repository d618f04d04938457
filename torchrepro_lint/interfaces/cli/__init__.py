"""The command line: argument parsing with click, and one function for each command.

- ``main`` of ``app``: parses the arguments, runs a command and exits with its status. Imports only click, so that ``--help`` is
  quick; each command imports what it needs when it runs.
- ``command``, ``option_group``, ``shared_options`` of ``options``: options by group, the help that shows them, completion.
- ``Arguments`` of ``options``: the parsed options of ``check``.
- ``run_check`` of ``check``: the command ``check``; ``watch`` of ``watch``: again after each change.
- ``SURVEY_COMMANDS``, ``survey`` of ``survey``: the commands about many repositories.
- ``run_report``, ``run_trace``, ``run_explain``, ``run_ops`` of ``reports``: the other commands.
- ``out``, ``note``, ``save``, ``progress`` of ``terminal``: output to the standard streams and to files.
"""
