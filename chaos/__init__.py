"""A seeded run of everything at once on a real server, while processes, connections and the server are killed.

    python -m chaos            CHAOS_SEED, CHAOS_SECONDS, CHAOS_HOME in the environment

``run`` starts the server, a proxy before it and all processes; ``schedule`` says what goes wrong when, and
``faults`` does it. ``agents``, ``followers``, ``group`` and ``projector`` are the processes, which use the
product as its users do and write down, each in a ``ledger`` of its own, what they were told. When the faults
have stopped and everything has settled, ``raw`` reads the keys and ``checker``, which shares no code with
the product, proves that the keys and the ledgers agree.

What is drawn from the seed is the schedule of faults and each agent's script. When a fault meets which
step is decided by real time: a seed that failed is likely to fail again, not certain.
"""
