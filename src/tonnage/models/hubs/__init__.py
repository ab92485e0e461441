"""Models of Hugging Face and ModelScope: what is fetched, and what is kept on this machine."""
