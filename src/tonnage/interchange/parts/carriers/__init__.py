"""What formats read that carry a command: objects of Kubernetes, tasks, services."""
