"""A survey: the overview of each of many repositories, computed apart from the others, as a dataset of Parquet files.

- ``named_repositories``, ``Repository`` of ``repositories``: the repositories that a command line or a list names.
- ``Extraction``, ``UnpackLimits``, ``RefusedError`` of ``repositories``: which files are copied, and how many at most.
- ``unpack``, ``content_digest`` of ``unpacking``: what is read of a folder, a git repository or an archive, and its digest.
- ``analyse``, ``Task``, ``Result`` of ``task``: the rows of one repository.
- ``isolated``, ``serve`` of ``isolation``: a task in a process of its own, with a deadline and a limit of memory.
- ``local_results``, ``cluster_results`` of ``scheduling``: the results of all tasks, on this machine or on a Dask cluster.
- ``Dataset``, ``SCHEMA``, ``TABLES`` of ``dataset``: the dataset, its tables and the version of its schema.
"""
