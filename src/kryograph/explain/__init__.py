"""Exact explanations: the log-odds of two classes at a node as sums over hops, nodes, features."""
