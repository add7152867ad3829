"""Doors for agent frameworks. Nothing here is imported unless it is asked for by name."""
