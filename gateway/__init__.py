"""The doors: the command, the demo, and what comes in from or goes out to other forms."""
