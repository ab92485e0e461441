"""What jobs and manifests are written from."""
