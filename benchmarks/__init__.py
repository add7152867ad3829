"""Speed as ratios: each against a named thing, in one run, interleaved."""
