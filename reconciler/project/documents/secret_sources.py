"""The sources whose values no shown field may have: variables of CI, clouds and this program, and files that hold keys.

One list for manifests and settings. `docs/manifests.md` has it as a table; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase, translate
from functools import cache, lru_cache
from pathlib import PurePosixPath
from typing import Final

from reconciler.project.secrets.reserved_places import fold

MIN_LENGTH: Final = 8  # characters: shorter values may be equal by chance
MIN_CONTAINED: Final = 2 * MIN_LENGTH  # shorter values may be part of another text by chance

# Names of environment variables whose values are keys and tokens, by what they are keys of. `*` matches any text.
VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "reconciler itself": ("RECONCILER_*KEY", "RECONCILER_*TOKEN", "RECONCILER_STORE"),
    "GitHub": ("ACTIONS_*", "GITHUB_TOKEN", "GITHUB_*_TOKEN", "GH_TOKEN", "GH_*_TOKEN"),
    "GitLab": (
        "CI_JOB_TOKEN", "CI_JOB_JWT*", "CI_BUILD_TOKEN", "CI_*_PASSWORD", "CI_REPOSITORY_URL", "CI_RUNNER_*TOKEN",
        "GITLAB_TOKEN", "GITLAB_*_TOKEN", "GL_TOKEN",
    ),
    "other CI": (
        "SYSTEM_ACCESSTOKEN", "BUILDKITE_*TOKEN", "CIRCLE_*TOKEN*", "BITBUCKET_*TOKEN", "TRAVIS_*TOKEN", "DRONE_*TOKEN",
        "JENKINS_*TOKEN",
    ),
    "clouds": (
        "AWS_SECRET_*", "AWS_*TOKEN", "AWS_*_KEY", "AZURE_*SECRET", "AZURE_*_KEY", "AZURE_CREDENTIALS", "AZURE_*TOKEN",
        "ARM_*SECRET", "ARM_*_KEY", "ARM_*TOKEN", "GOOGLE_*CREDENTIALS", "GOOGLE_*KEY", "GOOGLE_*TOKEN", "GCP_*KEY",
        "CLOUDFLARE_*TOKEN", "CLOUDFLARE_*KEY", "CF_API_*", "DIGITALOCEAN_*TOKEN",
        "HCLOUD_TOKEN", "HEROKU_API_KEY", "TF_TOKEN_*",
    ),
    "databases": (
        "PGPASSWORD", "POSTGRES_PASSWORD", "MYSQL_PWD", "MYSQL_*PASSWORD", "REDIS_*PASSWORD", "DATABASE_URL",
    ),
    "secret stores": ("VAULT_TOKEN", "VAULT_*_TOKEN", "VAULT_SECRET_ID", "OP_SERVICE_ACCOUNT_TOKEN", "CONSUL_*TOKEN"),
    "registries and others": (
        "NPM_TOKEN", "NODE_AUTH_TOKEN", "PYPI_*TOKEN", "TWINE_PASSWORD", "DOCKER_*PASSWORD", "DOCKER_AUTH_CONFIG",
        "SSH_PRIVATE_KEY", "SSH_KEY", "NGROK_API_KEY", "NGROK_AUTHTOKEN", "SLACK_*TOKEN", "SLACK_*WEBHOOK*",
        "OPENAI_API_KEY", "ANTHROPIC_API_KEY",
    ),
}  # fmt: skip

# Paths of files that hold keys. A name without a slash matches at any depth, one with a slash at its end a folder.
FILES: Final = (
    ".git/", ".ssh/", ".aws/", ".azure/", ".gcloud/", ".kube/", ".gnupg/", ".docker/", "secrets/", ".secrets/",
    ".env", ".env.*", "*.env", ".envrc", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".htpasswd",
    ".vault-token", "credentials", "credentials.*", "kubeconfig", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
    "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.tfstate", "*.token",
)  # fmt: skip

_PLACE: Final = "RECONCILER_STORE"  # often a path, which other texts may contain
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----")


@lru_cache(maxsize=1024)  # most environments are read many times, by a project and its base
def is_secret_variable(name: str) -> bool:
    """Whether the environment variable is known to hold a key or token."""
    return _secret_names().match(name.upper()) is not None


@cache
def _secret_names() -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for patterns in VARIABLES.values() for pattern in patterns))


def is_secret_file(path: str) -> bool:
    """Whether a normalized path of the project is that of a file that holds keys. Case does not matter."""
    *folders, name = PurePosixPath(fold(path)).parts
    return any(
        any(fnmatchcase(folder, pattern[:-1]) for folder in folders)
        if pattern.endswith("/")
        else fnmatchcase(name, pattern)
        for pattern in FILES
    )


def holds_private_key(text: str) -> bool:
    """Whether a text contains a private key in PEM."""
    return "PRIVATE KEY" in text and _PRIVATE_KEY.search(text) is not None


def find_secret_values(environ: Mapping[str, str]) -> Iterator[str]:
    """Yields the values of the environment's known keys and tokens that are long enough not to be equal by chance."""
    for name, value in environ.items():
        if len(text := value.strip()) >= MIN_LENGTH and is_secret_variable(name) and name != _PLACE:
            yield text


def contains_secret(text: str, secrets: frozenset[str]) -> bool:
    """Whether a text is one of the secrets, or is long and contains one that is long."""
    own = text.strip()
    if len(own) < MIN_LENGTH:
        return False
    return any(own == secret or (len(secret) >= MIN_CONTAINED and secret in own) for secret in secrets)
