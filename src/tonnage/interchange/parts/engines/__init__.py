"""What formats of serving engines share: their options, commands, models and manifests."""
