"""HTTP clients of the platform, agents, code hosts and webhooks: paging, rate limits, errors."""
