"""Labelling in the browser: journal, fast predictions, background fits, server and page."""
