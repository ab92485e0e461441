"""All that is wrong with a question, not only what is found first."""
