"""What ran and how: profiles, reports, the configuration."""
