"""Views: graphs, plans and schedules as text, JSON, DOT and SVG."""
