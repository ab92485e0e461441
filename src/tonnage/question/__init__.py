"""The one schema of every option: what can be asked, how its values are written, and how a question is read."""
