"""Long searches as jobs: each is a process of its own, which any worker of the server starts, follows and ends."""
