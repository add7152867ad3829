"""Logs on a Redis-compatible server."""
