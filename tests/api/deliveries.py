"""Deliveries of a secret to Vault and to GitHub."""

from __future__ import annotations

from reconciler.model.manifest import Delivery
from reconciler.model.value import Secret

TOKEN = Secret("canary-token-4Hs8", "test")
TO_VAULT = Delivery(
    "to_vault", "secret/agents/berlin", settings={"mount": "secret", "path": "agents/berlin", "key": "token"}
)
DATA = "secret/data/agents/berlin"
TO_GITHUB = Delivery("to_github_secret", "acme/web", settings={"name": "AGENT"})
TO_PROD = Delivery("to_github_secret", "acme/web", settings={"name": "AGENT", "environment": "prod"})
