"""Models of Hugging Face and ModelScope: requests, and the copies kept on this machine."""
