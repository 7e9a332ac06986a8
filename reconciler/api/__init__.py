"""HTTP clients: of the platform, with pages, limits and failures; of agents, code hosts and webhooks."""
