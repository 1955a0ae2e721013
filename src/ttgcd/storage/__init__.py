"""What every room needs to keep things: durable files, states on disk, finite checks, versions."""
