"""Where logs are kept: the port, the reference in memory, and Redis."""
