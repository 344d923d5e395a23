"""Tuning: Bayesian optimisation of settings on validation labels, in studies that go on."""
