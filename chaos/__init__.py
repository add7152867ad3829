"""A seeded run of everything at once on a real server, while processes, connections and the server are killed.

    python -m chaos            CHAOS_SEED, CHAOS_SECONDS, CHAOS_HOME, CHAOS_CLUSTER in the environment

``run`` starts a ``stage`` and all processes on it: a ``single`` server with proxies before it, or, with
CHAOS_CLUSTER=1, a ``cluster`` of three primaries with replicas. ``schedule`` says what goes wrong when, and
``faults`` does it. ``agents``, ``followers``, ``group`` and ``projector`` are the processes, which use the
product as its users do and write down, each in a ``ledger`` of its own, what they were told. When the faults
have stopped and everything has settled, ``raw`` reads the keys and ``checker``, which shares no code with
the product, proves that the keys and the ledgers agree.

On a cluster primaries are killed and replaced by their replicas, and slots move, at fixed times. Appends are
acknowledged when the replica has them. What somebody read before that and what a promotion then loses would
be told by LogLost, and is reported as strange; as a primary sends to its replica at once, that takes a kill
within microseconds.

What is drawn from the seed is the schedule of faults and each agent's script. When a fault meets which
step is decided by real time: a seed that failed is likely to fail again, not certain.
"""
