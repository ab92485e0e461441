"""Plans of a search as text: for serving, for training, and over a pool of machines."""
