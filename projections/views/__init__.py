"""The built-in projections. Pure."""
