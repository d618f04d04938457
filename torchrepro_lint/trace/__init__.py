"""Traces: where programs start, what each does in order across functions, and how it reaches an event.

- ``Entry``, ``EntryPoints`` of ``entry_points``: where a program starts.
- ``Traces`` and ``Context`` of ``traces``: a project with its traces, of which all queries above are asked; the module under check.
- ``Trace`` of ``builder``: the events, functions and call edges that an entry point reaches.
- ``TraceEvent``, ``CallFrame``, ``CallEdge``, ``guards`` of ``events``: an event in a trace, and its call path.
- ``strongly_connected_components`` of ``events``: the functions of a trace that call one another.
- ``prefix_and_rest`` of ``events``: an answer for the events that traces share, and one for a trace's own.
- ``runs_in_worker`` of ``call_targets``: whether a call's arguments run in loader workers.
- ``CallingContexts``, ``CallEdgeContexts`` of ``contexts``: the arguments and receivers that a function is entered with.
- ``call_path``, ``reached_at``, ``entry_statement``, ``place_of`` of ``call_paths``: call paths as they are reported.
- ``rows_of`` of ``library_models``: what library calls run.
- ``dead_initialisations`` of ``dead_initialisation``: what loaded weights replace; ``loaded_by`` of ``loaded_weights``: which models a
  call loads.
"""
