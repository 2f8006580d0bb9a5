"""Profiles, reports and the configuration."""
