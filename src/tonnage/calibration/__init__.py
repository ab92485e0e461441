"""Own runs: rows that were measured on this site, compared with the estimates, kept, shared, and measured anew."""
