"""The paper's figures, and its theorems by experiment: what is computed, and how it is drawn."""
