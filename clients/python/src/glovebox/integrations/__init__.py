"""Glovebox in the place of other systems' executors. Nothing here imports them unless they are installed."""
