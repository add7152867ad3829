"""Proves from the raw keys and the ledgers that nothing was lost, doubled, torn, reordered or told wrong.

It shares no code with the product: it knows the layout of the keys and the rules, and the standard library.
Each property is a function of ``Evidence`` that gives ``Finding``s, and has a name. Where a log is itself
broken (``versions``, ``operations``), what is built upon it is not compared any more: it would only say
the same again.
"""
