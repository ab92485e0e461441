"""What a replica does under a load: the steady state in closed form, and a simulation of the same engine request by request."""
