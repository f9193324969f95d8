"""CustomerService: tickets of returning customers, whose hidden persona decides how they must be met."""

from .env import CustomerServiceEnv

__all__ = ["CustomerServiceEnv"]
