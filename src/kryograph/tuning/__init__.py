"""Search for settings by Bayesian optimisation on validation labels, in resumable studies."""
