"""veRL's keys: what each decides, and how they are written."""
