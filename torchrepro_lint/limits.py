"""Limits of the analysis of a program: each with why it has its value, and what a user sees when it is met.

Where a comment says ``silently``, what lies beyond the limit is unknown, and no finding and no gap (TRL003) tells of it. The sizes
of caches (``_CACHED_...``) change no finding and stand where the cache is, as do the bounds of what is read from files
(``source/files.py``, ``config``) and parsed (``syntax``), and widths of text. Modules read ``limits.MAX_...`` where they need it,
so that a test can lower a limit.
"""

from __future__ import annotations

# --- Queries that depend on themselves -------------------------------------------------------------------------------

# A cycle of more queries is solved for all of them at once, since one by one takes quadratic time. No answer changes.
MAX_QUERIES_SOLVED_APART = 30
# The answers of a cycle that still grow after so many rounds would grow for ever; its queries are then solved one by one.
MAX_FIXPOINT_ROUNDS = 10
# So would answers of more names, which a round may multiply: ``x = x.view(n)`` gives each name of ``x`` a longer one. No real cycle that
# was met has more than 190.
MAX_FIXPOINT_NAMES = 2000
# After so many changes a type is widened: the value is unknown, and rules about it stay silent.
MAX_CHANGES_BEFORE_WIDENING = 2
# Changes after which an answer is dropped that may be wrong and was not asked for since. The user only waits longer.
MAX_STALE_REVISIONS = 64

# --- Names, classes and configurations of a project ------------------------------------------------------------------

# The depth to which elements of elements are told apart (k-limiting). Where a value may be an element of itself, as in a loop that
# unpacks what it keeps, there would be no end of them. Deeper ones count as elements of this depth; no rule asks for them.
MAX_ELEMENT_DEPTH = 3
# The keys by which a function is taken out of nested containers: enough for ``for i, (name, (step, weight)) in enumerate(table.items())``.
MAX_KEYS = 8

# A variable with more assignments is a table, and may be anything: what is called through it is a gap that TRL003 reports.
MAX_ASSIGNMENTS = 100
# ``getattr`` with any name on modules with more names in total stands for nothing: the call is a gap that TRL003 reports.
MAX_LOOKED_UP_NAMES = 100
# Variables and calls through which a name is followed; what is left stands for itself, silently.
MAX_NAME_STEPS = 100
# How often a dotted name is split, or put together from parts in a loop or a result. Beyond, the text is unknown, silently.
MAX_TEXT_SPLITS = 5
# So many parts of a composed text are too many, since the texts multiply. The text is then unknown, silently.
MAX_TEXT_PARTS = 6
# Composed texts within composed texts, which multiply again. Beyond, the text is unknown, silently.
MAX_TEXT_DEPTH = 2
# Words of variables that hold a function, or a table of functions. Calls by further ones are not found, silently.
MAX_ALIASES = 30
# Functions that hand their ``*args`` and ``**kwargs`` on to one another. What further ones get is unknown, silently.
MAX_HANDED_ON = 4
# Parameters through which functions hand a function on to one another. What further ones call is unknown, silently.
MAX_FORWARDS = 20
# Expressions through which an object is followed; what is left is unknown: a call of it is a gap that TRL003 reports.
MAX_OBJECT_STEPS = 60
# Expressions through which an element of a container is followed, silently: each step of an object may look for one.
MAX_ELEMENT_STEPS = 20
# What may be of more classes may be anything (a library's transform that is handed any other): a gap that TRL003 reports.
MAX_OBJECT_CLASSES = 32
# The same for classes that share a base class of the project: a method of their object may still be one of few functions.
MAX_FAMILY_CLASSES = 100
# Bases of a class, nearest first. Methods of farther ones are not found, silently.
MAX_ANCESTORS = 200
# Expressions through which a configuration is followed; the classes that the rest names are not found, silently.
MAX_CONFIGURATION_STEPS = 60
# Files that name one another, and readers around a path. Beyond, nothing is found, silently.
MAX_CONFIGURATION_DEPTH = 8
# Variables and calls through which an entry of ``sys.path`` is followed; beyond, the imports from it stay unresolved.
MAX_PATH_STEPS = 20
# ``..`` in an entry of ``sys.path``. The rest is ignored, silently.
MAX_PATH_LEVELS = 20

# --- Values followed backward ----------------------------------------------------------------------------------------

# Nested questions for the sources of a value; what is left stands for itself, and a rule that needs its value stays silent.
MAX_SOURCE_DEPTH = 10
# Steps for one such question, so that many callers of many callers end; the same is seen as for the depth.
MAX_SOURCE_STEPS = 100
# Dictionaries for one question: one that a loop fills from others reaches itself on ever more paths. Its entries are unknown.
MAX_SOURCE_DICTIONARIES = 500
# Dictionaries that are made of one another; beyond, the arguments are unknown, and rules about them stay silent.
MAX_DICTIONARY_DEPTH = 8
# Constructors of bases that one call runs; the attributes that further ones set are unknown, silently.
MAX_CONSTRUCTORS = 8
# Lists that are made of one another; beyond, the items are unknown, and rules about them stay silent.
MAX_LIST_DEPTH = 10
# Tests whose truth values ask for one another's. Beyond, a test is unknown, so that both branches may run.
MAX_NESTED_TESTS = 6
# Tests that are held in variables which tests read: ``self.whole = length is None``. Beyond, both branches may run.
MAX_HELD_TESTS = 3
# Steps to what an expression is when no option is given, and assignments of a variable in it; beyond, it is unknown,
# silently.
MAX_DEFAULT_DEPTH = 12
# With more calls of a function, the alternatives of its arguments stay unknown, and the operation is judged without them.
MAX_ALTERNATIVE_CALLS = 100
# Alternatives multiply over variables: with more variables, the call is judged as it is written, silently.
MAX_ALTERNATIVE_VARIABLES = 3
# Alternatives of one variable; further ones are not judged, silently.
MAX_ALTERNATIVE_VALUES = 12
# Conditional expressions within one another; the branches of deeper ones are not told apart, silently.
MAX_ALTERNATIVE_DEPTH = 4
# Calls from a loop to the step that trains; what is behind more does not count as training, silently.
MAX_TRAINING_STEP_CALLS = 4

# --- Types -----------------------------------------------------------------------------------------------------------

# Calls, to callers and callees, through which a type is followed; each multiplies the work. Beyond, it is unknown: rules stay
# silent.
MAX_TYPE_CALLS = 3
# Expressions nested deeper would overflow the stack; their types are unknown, and rules about them stay silent.
MAX_TYPE_DEPTH = 60
# With more calls of a function, the types of its parameters are unknown, and rules about them stay silent.
MAX_TYPED_CALLS = 20
# With more calls by a method's name, what they leave to its defaults is unknown where no call is known to run it.
MAX_NAMED_CALLS = 40
# Longer chains of assignments are solved from the first one on, which saves stack. No answer changes.
MAX_TYPED_ASSIGNMENTS = 40
# Longer displays are tables of data; their first items are representative. A set or tensor behind them is missed, silently.
MAX_DISPLAY_ITEMS = 32
# ``[0] * n`` with so many or more is a table of data; the types of its single items are unknown, silently.
MAX_REPEATED_ITEMS = 100

# --- Order that differs between runs ---------------------------------------------------------------------------------

# Places through which an order is followed from one source; a sink behind them is not reported, silently.
MAX_TAINTED_VALUES = 600
# Containers within one another that hold the order; a sink of deeper ones is not reported, silently.
MAX_TAINT_NESTING = 4
# Variables through which an index is followed back to a sort; one behind more is taken for any index, and may be reported.
MAX_INDEX_ORIGINS = 5
# The last calls that a tainted value remembers; with fewer, its path is less exact, and the finding has fewer steps.
MAX_TAINT_CALLS = 3
# Calls from a worker, and through which a launch is passed; what is behind more is not reported, silently.
MAX_WORKER_CALLS = 2
# Variables that are searched to show that a set has numbers; beyond, it may have strings, and is reported.
MAX_NUMERIC_VARIABLES = 60
# Calls that are searched for the same; beyond, the set may have strings, and is reported.
MAX_NUMERIC_CALLS = 3
# Values of one variable that are searched to rule out a set; beyond, it may be one. The user only waits longer.
MAX_NON_SET_VALUES = 1000
# Steps of one such search, and of all that end in a set; beyond, anything may be a set. The user only waits longer.
MAX_NON_SET_STEPS = 100_000
# Parts within parts of a file's name; the end of a deeper one is unknown, and its kind of file decides nothing, silently.
MAX_FILE_NAME_DEPTH = 4
# Variables and calls to what a folder's name begins with; beyond, the folder is one that earlier runs filled, and is
# reported.
MAX_FRESH_NAME_DEPTH = 6

# --- Traces of programs ----------------------------------------------------------------------------------------------

# Class methods of a base run for each subclass; those of a model zoo would run hundreds of times. A gap that TRL003 reports.
MAX_SUBCLASSES = 20
# Calling contexts of one function, which multiply along a path, and objects whose method one call runs; with more, the function gets
# the context of the whole trace, and the object may be any: less exact, silently.
MAX_CONTEXTS = 8
# Calls of a longer call path than programs have; beyond, a function gets the context of the whole trace, silently.
MAX_CONTEXT_DEPTH = 24
# Objects that hold one another; the arguments of methods of deeper ones are unknown, silently.
MAX_OBJECT_DEPTH = 10
# Calls behind a value that are searched for the object whose method is run (programs have up to 15); beyond, it may be any.
MAX_OBJECT_CALLS = 40
# Callers of callers that are searched for a loop; beyond, a call runs once, and rules about repeated calls stay silent.
MAX_CALLER_DEPTH = 5

# --- Gaps and operations ---------------------------------------------------------------------------------------------

# Expressions through which a callee is followed; beyond, the call is a gap that TRL003 reports.
MAX_CALLEE_ORIGINS = 200
# Expressions of the backward slice from the losses, as many as a large model has; the rest is a gap.
MAX_SLICE_EXPRESSIONS = 20_000
# Steps to show that no index is there twice; beyond, one may be, and the operation is reported.
MAX_INDEX_DEPTH = 8

# --- Gradients -------------------------------------------------------------------------------------------------------

# Functions that a module is passed through; with more, it may be trained anywhere, and its operations are reported.
MAX_FROZEN_FUNCTIONS = 20
# Expressions that are searched to show that a gradient goes nowhere; beyond, it may, and the operation is reported.
MAX_DEAD_EXPRESSIONS = 200
# A method name that more classes share does not identify its class: it may be any of them, silently.
MAX_SHARED_METHODS = 8

# --- Data loaders ----------------------------------------------------------------------------------------------------

# Callables that call one another; a deeper one may draw from anything, and the finding names no generator.
MAX_CALLABLE_NESTING = 16
# Steps for what is indexed or iterated, which is nearly always an array; a dataset behind more is not seen, silently.
MAX_INDEXED_STEPS = 40
# With more callers, a function that makes a loader is judged once, with unknown arguments, silently.
MAX_LOADER_CALLERS = 24
# Datasets that wrap one another; a deeper one may draw from anything, and the finding names no generator.
MAX_DATASET_NESTING = 12
# Datasets of one class that one object may be. With more, they are judged together, by all that the project passes to their class: what
# each draws from depends on what its own datasets may be, and they may wrap one another. The finding may name a generator too many.
MAX_CONSTRUCTIONS_APART = 4
# Steps to where a worker's seed comes from; beyond, it may differ between workers, silently.
MAX_WORKER_SEED_DEPTH = 12

# --- Random numbers --------------------------------------------------------------------------------------------------

# Calls above a draw whose arguments are read; beyond, anything may be passed, and the draw is reported.
MAX_FEASIBLE_DEPTH = 10
# Calls in all that are read for the same; beyond, anything may be passed, and the draw is reported.
MAX_FEASIBLE_CALLS = 60
# The same where the answer decides which operation a message names: beyond, it may be one that does not run.
MAX_NAMED_DEPTH = 2
# The same for the calls in all. Models have some twenty calls of a function that makes a layer for one, two or three dimensions.
MAX_NAMED_CALLS = 40
# Functions of a program in which a gap is looked at for arguments that rule it out; in a larger one it stays, as TRL003 reports. A registry
# of many models enters thousands, and what each gets from a dictionary of settings takes minutes to follow.
MAX_FUNCTIONS_OF_GAPS = 1000
# A switch that more calls lead to is taken to run: the message may name a less likely draw.
MAX_TESTED_DEPTH = 4
# Draws that are compared for the likeliest: the message may name a less likely one.
MAX_COMPARED_DRAWS = 8
# Results of a run that are looked at for arguments that rule them out; a run with more leaves one.
MAX_COMPARED_RESULTS = 8
# Calls that are read to show that an option leaves a seeder out; beyond, it may run, and the finding stays silent.
MAX_OPTIONAL_CALLS = 20
# Calls above the seeder that are read for the same; beyond, it may run, and the finding stays silent.
MAX_OPTIONAL_DEPTH = 5
# Functions with draws that are read to show that what leaves the seeder out leaves them out, too; beyond, the seed is reported.
MAX_OPTIONAL_DRAWS = 40
# Of a larger cycle of functions that call one another each is judged by itself, for time; findings may differ, silently.
MAX_FUNCTIONS_IN_CYCLE = 100
# Uses through which a number is followed to a seed or a split; one behind them is not reported, silently.
MAX_NUMBER_USES = 60
# Uses through which a loader is followed; beyond, the run takes samples from it, and its draws are reported.
MAX_LOADER_USES = 60
# Uses through which a draw of the system is followed to data or a seeder; those behind them are not seen, silently.
MAX_SYSTEM_DRAW_USES = 40
# Calls through which a drawn number is followed to an identifier; beyond, it may be data, and is reported.
MAX_IDENTIFIER_DEPTH = 6

# --- Checks and fixes ------------------------------------------------------------------------------------------------

# Variables and calls between the clock and a comparison; a farther one is not reported, silently.
MAX_CLOCK_DEPTH = 4
# Variables between a number of workers and the count of processors; a farther one is not reported, silently.
MAX_COUNT_DEPTH = 6
# Calls that an uninitialised tensor is passed through; deeper ones count as filling it, and the finding stays silent.
MAX_FILLING_CALLS = 3
# A method of what may be anything has more names: which one draws is uncertain, and the finding stays silent.
MAX_CERTAIN_NAMES = 4
# Wrappers around an environment, far more than there are; a seed behind them is not seen, and the environment is reported.
MAX_ENVIRONMENT_WRAPPERS = 40
# Classes of a dictionary that a key chooses from; attributes of the others are not looked for.
MAX_TABLE_MATES = 40
# Containers of layers or transforms in one another, more than there are; draws of deeper ones are missed.
MAX_NESTED_CONTAINERS = 8
# Variables that are searched for other uses of a value; beyond, there may be one, and the finding has no safe fix.
MAX_ESCAPE_VARIABLES = 60
# Parameters and variables that hand a seed on; beyond, a fix writes the seed as it is named there.
MAX_SEED_STEPS = 8
