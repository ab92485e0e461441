"""What several formats share: a module or a folder for each subject."""
