"""The protocol that lands batches of a stream in tables exactly once, for every engine.

A batch is a plan, tasks, a commit and an entry of the journal:

1. The driver writes the plan (`plan`): which sequences of the stream the batch has, and how they
   are divided among tasks. It is written only if it does not exist, so of two drivers both use the
   plan of the first.
2. An engine (`engine`) runs the tasks. They write finished files under unique names, and report the
   files with their rows (`task_report`). No reader sees these files yet.
3. The driver adds the files to the tables. A table takes a batch only once.
4. The driver writes the entry of the journal (`journal`), again only if it does not exist.

A driver that dies at any point leaves a plan without an entry. The next driver begins at step 2 of
the same plan. Plans and entries are small objects in a `store`.

This package needs neither Spark nor a server.
"""
