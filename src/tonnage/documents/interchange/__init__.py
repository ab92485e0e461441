"""Forms of what is read of other tools and written for them."""
