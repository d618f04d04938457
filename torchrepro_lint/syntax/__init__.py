"""Syntax trees: the same facts are collected from Python's own ``ast`` and from libcst.

libcst takes any Python from 3.0 on, whatever runs this, keeps every character, and is the reference. It also costs ten
times as much: 55 microseconds a line where ``ast`` needs 6, four fifths of a run. So ``ast`` is asked first, and libcst
where ``ast`` cannot parse a text or cannot be trusted with it: syntax newer than the Python that runs, a mistake, a
literal that this Python refuses. All that is said of a mistake comes from libcst's side.

A ``SyntaxTree`` answers what the one collector asks of a parsed text, in the terms of ``facts``. What ``ast`` does not keep,
parentheses, the pieces of adjacent strings and where an f-string's values stand, is read from the text between the nodes.
"""
