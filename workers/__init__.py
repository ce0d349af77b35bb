"""Celery tasks, and the supervisor that runs one trainer process for one job."""
