"""Training of networks: loop, optimisers and stop rules."""
