"""The command `sparkring`: progress, events and exit codes over ansible-runner."""
