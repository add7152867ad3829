"""The read side: what the service would remember, and why each other event is not in it."""
