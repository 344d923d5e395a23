"""Published and own settings, and the runner that repeats a run over seeds."""
