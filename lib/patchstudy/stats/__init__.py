"""Estimates and tests on plain arrays; this floor knows nothing of networks."""
