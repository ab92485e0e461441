"""OpenRLHF's arguments: what each decides."""
