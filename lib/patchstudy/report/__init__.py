"""Runs the notebooks and writes the reports: HTML, PDF, text and an index."""
