"""The store: what runs keep in the cache directory of a project.

- ``open_cache``, ``project_cache``, ``remove``, ``directory`` of ``cache``: the signed cache directory
- ``FileStore`` of ``file_store``: the facts of files
- ``FindingStore`` of ``finding_store``: the findings of components that have not changed
- ``QueryStore`` of ``query_store``: durable memo tables of queries, revalidated in the next process
- ``run_record``, ``load_outcome``, ``save_outcome`` of ``run_store``: the outcome of a whole run
"""
