"""The syntax of one file: parsing, lowering to our own syntax tree, scopes, definitions, use-def, control flow, events.

- ``parse_module``, ``ParseError`` of ``parse``: the syntax tree of a text
- ``read_as_names`` of ``parse``, ``with_stand_in`` of ``syntax_errors``: ``async`` as a name
- ``SyntaxTree``, ``ModuleSummary``, ``Expression``, ``Statement``, ``Function``, ``Class`` and the nodes of ``nodes``: the tree
- ``span`` of ``nodes``: the offsets of a node
- ``in_project``, ``path_of``, ``split_name``, ``simple_name``, ``local_symbol`` of ``qualified_names``: symbols of the project, names from outside
- ``is_instance``, ``instance_value``, ``class_of``, ``project_classes`` of ``qualified_names``: the objects that they stand for
- ``takes_receiver``, ``is_classmethod`` of ``binding``: parameters
- ``passing_argument``, ``bound_argument``, ``known_argument``, ``parameter_argument`` of ``binding``: argument binding
- ``receiving_parameters`` of ``binding``: argument binding from the side of the call; ``launched_call`` of ``binding``: the call that a
  thread, a process or a pool makes
- ``statements``, ``expressions``, ``subexpressions``, ``operands_of``, ``blocks``, ``bodies``, ``last_identifier`` of ``visitor``: traversal
- ``assignments``, ``mutation_sites``, ``attribute_stores``, ``instance_assignments`` of ``definitions``: where places get their values
- ``unpack``, ``unpacking_steps``, ``unpacking_keys``, ``subscript_keys``, ``bound_references`` of ``definitions``: destructuring
- ``UseDefIndex``, ``ExpressionPosition``, ``Block``, ``Kill`` of ``use_def``: where each expression stands, uses and kills of a variable
- ``control_flow_position``, ``functions_around``, ``branching_around`` of ``scopes``: positions
- ``leaves``, ``constant_truth``, ``StaticContext`` of ``control_flow``: jumps, constant tests
- ``events``, ``Event``, ``Guard``, ``event_key`` of ``control_flow``: events in evaluation order
- ``summarise``, ``identifiers_of``, ``is_test`` of ``summary``: what linking asks of every file
- ``Options``, ``Option``, ``option_of`` of ``cli_options``: the command-line options that files declare
- ``encode_tree``, ``decode_tree`` of ``file_encoding``: a tree as text whose parts are decoded on demand
- ``pickled``, ``unpickled``, ``summary_json``, ``summary_from`` of ``serialization``: trees between processes, summaries as JSON

Both Python's own ``ast`` and libcst are lowered to the same tree. libcst reads any Python from 3.0 on, whatever Python runs this, loses no
character, and is the reference; but it takes 55 microseconds a line where ``ast`` takes 6. So ``ast`` is asked first, and libcst where
``ast`` cannot parse a text or cannot be trusted with it: syntax newer than the running Python, a syntax error, a literal that this
Python refuses. A text that libcst refuses, too, is a syntax error; ``syntax_errors`` puts it into words. What ``ast`` does not keep
(parentheses, the pieces of adjacent strings, where the values in an f-string stand) is read from the text between its nodes.
"""
