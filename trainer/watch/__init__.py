"""What looks after a running job: budgets, guards, the plateau stop, and signs of false gains."""
