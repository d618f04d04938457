"""Name resolution across the files of a program: imports, symbols, class hierarchy, points-to, call graph, escapes.

- ``ProgramIndex`` of ``program_index``: names, call sites and the call graph of a project; the lowest layer of ``Traces``.
- ``link``, ``revise``, ``prepare_revision`` of ``program_index``: the names of files, and what becomes of them when files change.
- ``Names`` of ``names``: the names that an expression may stand for (points-to), and all that is derived from them.
- ``ComputedNames`` of ``computed_names``: what ``getattr``, ``globals()``, ``import_module`` and registries give under a computed name.
- ``ObjectSources`` of ``object_sources``: the objects that an expression may be, by what callers pass.
- ``passed_values`` of ``higher_order``: the values that a call passes, also within containers.
- ``Values`` of ``values``: the expressions that a value comes from.
- ``ClassHierarchy`` of ``symbols``: definitions, base classes, subclasses and methods.
- ``CallGraph`` of ``call_graph``: the calls of a function, and the arguments that they pass for a parameter.
- ``NumberedCalls``, ``CallSiteIndex``, ``call_candidates``, ``identifiers_in`` of ``call_sites``: call sites by word and callee, and the files
  that may call a function.
- ``ImportResolver`` of ``imports``: the file that an import loads, and what a name of a module stands for.
- ``ModuleTree`` of ``search_path``: the modules of a project, and the folders in which imports find them.
- ``Definitions``, ``EventCache`` of ``definitions``: the symbols of a file, and the events of its functions.
- ``Registries``, ``dataclass_fields``, ``argument_makers`` of ``registries``: tables that decorators fill, the fields of dataclasses, and
  the functions that make the arguments of others.
"""
