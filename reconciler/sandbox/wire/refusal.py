"""Everything the platform refuses, in one catalogue: public error code, HTTP status and message.

Codes are those of the public service, where one is known for the rule; a client tells refusals apart by code, because
nearly all of them, conflicts of state included, are a 400. A cause without a code carries none in its answer either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class Refusal(Exception):
    def __init__(self, code: int | None, status: int, msg: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(msg)
        self.code = code
        self.status = status
        self.msg = msg
        self.headers = headers or {}


@dataclass(frozen=True)
class Cause:
    """A rule that can be broken; calling it with what the message names makes the refusal to raise."""

    code: int | None
    text: str
    status: int = 400

    def __call__(self, **named: object) -> Refusal:
        return Refusal(self.code, self.status, self.text.format(**named))


def choice(value: str, choices: Iterable[str], cause: Cause) -> None:
    if value not in choices:
        raise cause(value=value)


# --- the request itself -----------------------------------------------------------------------------------------------

NO_KEY = Cause(200, "The request carries no API key: send it as Authorization: Bearer <key>.", 401)
BAD_AUTHORIZATION = Cause(201, "The Authorization header is neither Bearer nor Basic with a key.", 401)
WRONG_KEY = Cause(203, "This API key is not known.", 403)
KEY_OF_INACTIVE = Cause(None, "The owner of this API key, {id}, is not active.", 403)
FOREIGN_HOST = Cause(None, "{header} {value!r} names another site: this path answers no web pages.", 403)
NO_SUCH_PATH = Cause(None, "There is nothing at {path}.", 404)
NOT_FOUND = Cause(None, "Resource not found.", 404)
MALFORMED_PATH_ID = Cause(222, "{id!r} is not an id: ids look like {prefix}… with 27 letters and digits.", 404)
WRONG_PATH_ID = Cause(227, "{id!r} does not name this kind of object: its ids begin with {prefix}.", 404)
METHOD_NOT_ALLOWED = Cause(None, "{method} is not possible here.", 405)
UNSUPPORTED_TYPE = Cause(210, "Content-Type {type!r} is not supported: send application/json.")
UNEXPECTED_BODY = Cause(211, "{method} takes no body.")
TRUNCATED_BODY = Cause(212, "The JSON body ends before it is complete.")
UNPARSABLE_BODY = Cause(213, "The body cannot be read as JSON: {why}.")
TOO_LARGE = Cause(None, "The body is too large.", 413)
UNKNOWN_FIELD = Cause(214, "{field!r} is not a field of this request; these are: {supported}.")
WRONG_TYPE = Cause(215, "{field} must be {wanted}.")
NO_TYPE = Cause(216, "A body needs the header Content-Type: application/json.")
BAD_VERSION = Cause(217, "API version {version!r} does not exist: send version 2.")
NO_VERSION = Cause(218, "The request names no API version: send Service-Version: 2 or Ngrok-Version: 2.")
MALFORMED_ID = Cause(223, "{field}: {id!r} is not an id.")
OVER_BUDGET = Cause(226, "More than {limit} requests within a minute.", 429)
TOO_MANY_AT_ONCE = Cause(225, "More than {limit} requests at the same time.", 429)
CREATES_OVER_BUDGET = Cause(None, "No more objects can be made at {path} for now.", 429)
WRONG_ID = Cause(227, "{field}: {id!r} is not an id of the kind wanted here, which begins with {wanted}.")
SEVERAL_WRONG_ID = Cause(243, "{field}: {id!r} is not an id of a kind wanted here; those begin with {wanted}.")
UNPARSABLE_QUERY = Cause(230, "The query string cannot be read.")
UNKNOWN_PARAMETER = Cause(231, "{name!r} is not a query parameter here; these are: {supported}.")
REPEATED_PARAMETER = Cause(232, "The query parameter {name!r} may be given once.")
BAD_LIMIT = Cause(233, "limit must be from 1 to 100, not {value}.")
LIMIT_NO_NUMBER = Cause(244, "limit must be a number from 1 to 100, not {value!r}.")
FILTER = Cause(250, "The filter cannot be used: {why}.")
BAD_TIMESTAMP = Cause(241, "{field} must be an RFC 3339 timestamp, not {value!r}.")

# --- rules that many kinds share --------------------------------------------------------------------------------------

REQUIRED = Cause(None, "{field} is required.")
NOT_A_CHOICE = Cause(None, "{field} must be one of {choices}, not {value!r}.")
TOO_LONG = Cause(100, "{field} takes at most {limit} bytes, and has {size}.")
NOT_BY_PATCH = Cause(None, "{field} cannot be removed by an update: DELETE {path} removes it.")
NO_SUCH_OBJECT = Cause(None, "{field}: {id} does not exist.")
IN_USE = Cause(None, "{id} is in use by {user}.")
PLANTED = Cause(None, "{id} was planted as it is: it can be deleted, and not be changed.")
PLANTED_TWICE = Cause(None, "There is an object {id} at {path} already.")
CONTROL = Cause(None, "The sandbox can do nothing with this: {why}.")

# --- endpoints --------------------------------------------------------------------------------------------------------

ENDPOINT_TYPE = Cause(248, "type must be cloud, not {value!r}.")
ENDPOINT_PORT = Cause(18003, "A tcp url needs a port: {url!r}.")
ENDPOINT_URL = Cause(249, "{url!r} is not a url of the form <scheme>://<host>[:<port>].")
TRAILING_SLASH = Cause(9038, "A url has no slash at its end: write {url!r}.")
ENDPOINT_POLICY = Cause(18002, "traffic_policy: {why}.")
ENDPOINT_UNCHANGED = Cause(18004, "The update of the endpoint supplies nothing to change.")
ENDPOINT_SCHEME = Cause(18005, "The scheme of an endpoint's url cannot change from {old} to {new}.")
ENDPOINT_UNRESERVED = Cause(18006, "{host!r} is not reserved: reserve the domain or address first.")
ENDPOINT_DUPLICATE = Cause(18009, "An endpoint with the url {value!r} exists already.")
POOLING_BESIDE_ONE = Cause(18016, "Another endpoint has the url {url!r}, without pooling.")
NO_POOLING_BESIDE_POOL = Cause(18017, "Endpoints with pooling have the url {url!r}: set pooling_enabled as well.")
ENDPOINT_REQUIRED = Cause(18015, "{field} is required for a cloud endpoint.")
ENDPOINT_READ_ONLY = Cause(None, "Only cloud endpoints can be changed or deleted; {id} is of type {type}.")
BINDING_UNKNOWN = Cause(15005, "{value!r} is not a binding: public, internal or kubernetes.")
BINDING_REPEATED = Cause(15006, "bindings names {value!r} twice.")
BINDING_INTERNAL = Cause(9029, "Hosts below .internal have the binding internal, and only they: {host!r}.")
BINDING_KUBERNETES = Cause(18018, "The binding kubernetes takes http, tls and tcp, not {scheme}.")

# --- edges and their modules ------------------------------------------------------------------------------------------

HOSTPORT_MALFORMED = Cause(7104, "{value!r} is not of the form host:port.")
HOSTPORT_PORT = Cause(7116, "This edge serves port 443 only, not {value!r}.")
HOSTPORT_DOMAIN = Cause(7117, "The domain of {value!r} is not reserved.")
HOSTPORT_ADDRESS = Cause(7113, "The address {value!r} is not reserved.")
HOSTPORT_OF_DOMAIN = Cause(7120, "A TCP edge serves reserved addresses; {value!r} belongs to a domain.")
HTTPS_HOSTPORT_OF_ADDRESS = Cause(7121, "An HTTPS edge serves reserved domains; {value!r} is a TCP address.")
TLS_HOSTPORT_OF_ADDRESS = Cause(7133, "A TLS edge serves reserved domains; {value!r} is a TCP address.")
HOSTPORT_TAKEN = Cause(7122, "The hostport {value!r} is served already.")
TERMINATE_AT = Cause(None, "terminate_at must be edge or upstream, not {value!r}.")
NO_TERMINATE_AT = Cause(7109, "TLS of an HTTPS edge always ends at the edge: terminate_at is not accepted.")
MIN_VERSION_UPSTREAM = Cause(None, "min_version must be null when terminate_at is upstream.")
MIN_VERSION = Cause(None, "min_version {value!r} is not a TLS version.")
MUTUAL_TLS_UPSTREAM = Cause(1694, "mutual_tls needs TLS to be terminated at the edge.")
MODULES_UPSTREAM = Cause(7062, "When TLS is terminated upstream, the edge cannot have: {modules}.")
NO_BACKEND = Cause(None, "{field}: the backend {id} does not exist.")
BACKEND_ID = Cause(242, "{field}: {id!r} is not the id of a backend.")
NO_POLICY_OF_MODULE = Cause(7007, "{field}: the IP policy {id} does not exist.")
POLICY_ID = Cause(229, "{field}: {id!r} is not the id of an IP policy.")
NO_AUTHORITY = Cause(1672, "{field}: the certificate authority {id} does not exist.")
AUTHORITY_ID = Cause(228, "{field}: {id!r} is not the id of a certificate authority.")
AUTHORITY_IN_USE = Cause(None, "The certificate authority {id} is in use by {user}.")
MODULE_POLICY = Cause(2200, "{field}: {why}.")
ROUTE_ELSEWHERE = Cause(7110, "The route {id} belongs to another edge.", 404)
ROUTE_DUPLICATE = Cause(7126, "The edge has a route for {value} already.")
ROUTE_MATCH = Cause(7131, "match must begin with a slash: {value!r}.")
SAML_METADATA = Cause(None, "idp_metadata is not an EntityDescriptor in XML: {why}.")
NAMEID_FORMAT = Cause(None, "nameid_format {value!r} is not supported.")
LOGIN_COUNT = Cause(7079, "A route has one of saml, oidc and oauth at most, not {names}.")
LOGIN_ON_EDGE = Cause(7155, "Only one route of an edge asks who somebody is, and {id} does already.")
OIDC_ISSUER = Cause(7088, "{field} is required.")
OIDC_CLIENT = Cause(7089, "{field} is required.")
OIDC_SECRET = Cause(7090, "{field} is required.")
OAUTH_PROVIDER = Cause(None, "oauth.provider needs exactly one member, and has {count}.")
OAUTH_CLIENT = Cause(383, "{field}: client_id and client_secret come together or not at all.")
OAUTH_SCOPES = Cause(390, "{field}: scopes need an application of your own, with client_id and client_secret.")
BREAKER = Cause(None, "circuit_breaker.{field} must be {wanted}, not {value}.")
WEBHOOK_PROVIDER = Cause(7030, "{value!r} is not a webhook provider.")
WEBHOOK_SECRET = Cause(7027, "The webhook provider {value} needs a secret.")
WEBHOOK_NO_SECRET = Cause(7026, "The webhook provider sns takes no secret.")

# --- credentials, keys, bots ------------------------------------------------------------------------------------------

ACL_RULE = Cause(600, "{value!r} is not an ACL rule: bind:<host>, bind:<key>=<value> or *.")
CREDENTIAL_UNCHANGED = Cause(606, "The update of the credential supplies nothing to change.")
SSH_KEY_DUPLICATE = Cause(609, "This public key is registered already.")
SSH_KEY_EMPTY = Cause(611, "public_key is required.")
SSH_KEY_INVALID = Cause(612, "public_key is not a public key: {why}.")
OWNER_BY_ADMIN = Cause(630, "{field}: only an administrator may name another owner than the one of the key.")
OWNER_INACTIVE = Cause(636, "{field}: {id} is not active.")
BOT_BY_ADMIN = Cause(4111, "Only an administrator may create, update or delete a bot user.")
BOT_NAME = Cause(4109, "name must not be empty.")
BOT_DUPLICATE = Cause(4112, "A bot user with the name {value!r} exists already.")

REPORTED_URL = Cause(None, "urls: {value!r} is not a URL.")

# --- IP restrictions and policies -------------------------------------------------------------------------------------

POLICY_UNCHANGED = Cause(1400, "The update of the IP policy supplies nothing to change.")
POLICY_RULE_UNCHANGED = Cause(1401, "The update of the IP policy rule supplies nothing to change.")
CIDR_INVALID = Cause(1406, "{value!r} is not a CIDR.")
CIDR_DUPLICATE = Cause(1408, "The policy has a rule for {value} already.")
CIDR_HOST_BITS = Cause(1409, "{value} is not the address of a network; that is {network}.")
CIDR_MASK = Cause(1413, "{value!r} has no mask.")
NO_POLICY = Cause(1414, "{field}: the IP policy {id} does not exist.")
POLICY_ID_OF_RULE = Cause(1414, "{field}: {id!r} is not the id of an IP policy.")
POLICY_IN_USE = Cause(1420, "The IP policy {id} is in use by {user}.")
LAST_RULE = Cause(1419, "The IP policy {policy} restricts the dashboard and keeps its last rule.")
POLICY_ACTION = Cause(1422, "action must be allow or deny, not {value!r}.")
POLICY_HAS_NO_ACTION = Cause(1423, "An IP policy has no action; its rules have.")
NO_POLICY_OF_RESTRICTION = Cause(1801, "{field}: the IP policy {id} does not exist.")
RESTRICTION_DUPLICATE = Cause(1802, "A restriction of type {value} exists already.")
RESTRICTION_TYPE = Cause(1803, "type must be one of dashboard, api, agent, endpoints, not {value!r}.")
RESTRICTION_EMPTY = Cause(1804, "A restriction needs at least one IP policy.")

# --- domains and addresses --------------------------------------------------------------------------------------------

REGION = Cause(400, "region must be one of au, eu, ap, us, jp, in, sa, not {value!r}.")
ADDRESS_REGION = Cause(500, "region must be one of au, eu, ap, us, jp, in, sa, not {value!r}.")
WILDCARD = Cause(402, "Only the first label of a domain can be a wildcard: {value!r}.")
INGRESS_WILDCARD = Cause(402, "An agent ingress takes a domain without a wildcard: {value!r}.")
WILDCARD_PART = Cause(403, "A wildcard is a label of its own: {value!r}.")
WILDCARD_OF_ALL = Cause(416, "{value!r} would take all domains of the platform.")
DOMAIN_CHARACTER = Cause(406, "{sign!r} is not part of a domain: {value!r}.")
DOMAIN_DUPLICATE = Cause(413, "The domain {value!r} is reserved already.")
DOMAIN_UNCHANGED = Cause(422, "The update of the reserved domain supplies nothing to change.")
PUNYCODE = Cause(429, "{value!r} is not valid punycode.")
CERTIFICATE_TWICE = Cause(434, "certificate_id and certificate_management_policy exclude each other.")
CERTIFICATE_NOT_UPLOADED = Cause(None, "certificate_id: {id} is managed by the platform; an uploaded one is wanted.")
MANAGED_CERTIFICATE = Cause(436, "A managed certificate goes with its policy: detach the policy instead.")
POLICY_ON_OWN_DOMAIN = Cause(439, "certificate_management_policy must be null for a domain of the platform.")
UPLOAD_ON_OWN_DOMAIN = Cause(440, "A domain of the platform takes no uploaded certificate.")
UNDERSCORE = Cause(438, "A domain has no underscore: {value!r}.")
DOMAIN_IN_USE = Cause(446, "The domain {id} is in use by {user}.")
NOT_QUALIFIED = Cause(448, "{value!r} is not a fully qualified domain name.")
DOMAIN_NAME = Cause(449, "Exactly one of domain and name is required; name is its older spelling.")
DEV_DOMAIN = Cause(458, "The domain {id} belongs to the account and stays.")
LABEL_TOO_LONG = Cause(513, "A label of {value!r} is longer than 63 bytes.")
DOMAIN_TOO_LONG = Cause(514, "The domain is longer than 253 bytes.")
ADDRESS_UNCHANGED = Cause(506, "The update of the reserved address supplies nothing to change.")
ADDRESS_IN_USE = Cause(None, "The address {id} is in use by {user}.")
INGRESS_OWN_DOMAIN = Cause(6705, "An agent ingress needs a domain of your own, not {value!r}.")
INGRESS_DUPLICATE = Cause(6706, "An agent ingress for {value!r} exists already.")
AUTHORITY = Cause(1908, "authority must be letsencrypt, not {value!r}.")
KEY_TYPE = Cause(1909, "private_key_type must be rsa or ecdsa, not {value!r}.")

# --- backends ---------------------------------------------------------------------------------------------------------

NO_CHILD = Cause(6501, "{field}: the backend {id} does not exist.")
CHILD_ID = Cause(6526, "{field}: {id!r} is not the id of a backend.")
CHILD_KIND = Cause(6527, "{field}: {id!r} is not the id of a backend, which begins with one of {wanted}.")
BACKEND_IN_USE = Cause(6502, "The backend {id} is in use by {user}.")
STATUS_CODE = Cause(6517, "status_code must be an HTTP status from 100 to 599, not {value}.")
FAILOVER_CYCLE = Cause(6525, "A failover backend may not reference {id}, because that contains itself then.")
WEIGHTED_CYCLE = Cause(6524, "A weighted backend may not reference {id}, because that contains itself then.")
FAILOVER_NESTED = Cause(6513, "A failover backend contains at most {most} failover backends, not {count}.")
STATIC_ADDRESS = Cause(6505, "address is not of the form host:port: {value!r}.")
STATIC_INVALID = Cause(6506, "address {value!r} is invalid: it is not a host with a port from 1 to 65535.")
STATIC_HOST = Cause(6507, "address {value!r} has no host.")
WEIGHT = Cause(6512, "The weight of {id} must be from 0 to 10000, not {value}.")

# --- certificates and keys --------------------------------------------------------------------------------------------

ENCRYPTED_KEY = Cause(1902, "private_key_pem is encrypted.")
CERTIFICATE_INVALID = Cause(1900, "certificate_pem is not a certificate: {why}.")
PRIVATE_KEY_INVALID = Cause(1903, "private_key_pem is not a private key: {why}.")
SEVERAL_AUTHORITIES = Cause(1912, "ca_pem holds more than one certificate.")
NOT_AN_AUTHORITY = Cause(1913, "ca_pem is not the certificate of a certificate authority.")
NOT_PEM = Cause(1920, "ca_pem is not PEM: {why}.")
AUTHORITY_SIZE = Cause(1921, "ca_pem is larger than {limit} bytes.")
NO_CA_PEM = Cause(1919, "ca_pem is required.")
KEY_MISMATCH = Cause(1923, "private_key_pem does not belong to certificate_pem.")
KEY_IS_CERTIFICATE = Cause(1924, "private_key_pem holds a certificate.")
CERTIFICATE_IS_KEY = Cause(1925, "certificate_pem holds a private key.")
CHAIN_ORDER = Cause(1926, "certificate_pem: each certificate must be followed by the one that issued it.")
NO_KEY_PEM = Cause(1901, "private_key_pem is required.")
NO_CERTIFICATE_PEM = Cause(1922, "certificate_pem is required.")
NO_CERTIFICATE = Cause(1965, "{field}: the certificate {id} does not exist.")
NO_SSH_AUTHORITY = Cause(1949, "{field}: the SSH certificate authority {id} does not exist.")
SSH_AUTHORITY_MISSING = Cause(1951, "ssh_certificate_authority_id is required.")
HOST_KEY_MISSING = Cause(1952, "public_key is required.")
HOST_KEY_INVALID = Cause(1934, "public_key is not a key in authorized-keys format: {why}.")
NOT_A_DURATION = Cause(1963, "valid_until of a host certificate must come after valid_after.")
NO_USER_DURATION = Cause(1962, "valid_until of a user certificate must come after valid_after.")
PRINCIPALS = Cause(None, "principals takes at most {most}, and has {count}.")
SSH_AUTHORITY_IN_USE = Cause(1964, "The SSH certificate authority {id} has signed {user}.")
CERTIFICATE_MANAGED = Cause(1966, "The certificate {id} is managed by the platform.")
KEY_SIZE = Cause(1939, "key_size must be 2048 or 4096, not {value}.")
KEY_SIZE_OF_RSA = Cause(1940, "key_size is for rsa only, not for {type}.")
SSH_KEY_TYPE = Cause(1936, "private_key_type must be rsa, ecdsa or ed25519, not {value!r}.")
CURVE = Cause(1941, "elliptic_curve must be 256, 384 or 521, not {value!r}.")
CURVE_OF_ECDSA = Cause(1942, "elliptic_curve is for ecdsa only, not for {type}.")

# --- vaults -----------------------------------------------------------------------------------------------------------

VAULT_NAME = Cause(23000, "name takes letters, digits, '_', '-', '/' and '.' only: {value!r}.")
VAULT_NOT_EMPTY = Cause(23003, "The vault {id} is not empty: it keeps {user}.")
VAULT_DUPLICATE = Cause(23004, "A vault with the name {value!r} exists already.")
NO_VAULT = Cause(None, "{field}: the vault {id} does not exist.")
SECRET_NAME = Cause(24000, "name takes letters, digits, '_', '-', '/' and '.' only: {value!r}.")
SECRET_VALUE = Cause(24003, "value is required.")
SECRET_DUPLICATE = Cause(24005, "The vault has a secret with the name {value!r} already.")

# --- events -----------------------------------------------------------------------------------------------------------

TARGET_COUNT = Cause(5115, "target takes one member, and has {count}.")
TARGET_MISSING = Cause(5100, "target needs one member, and has none.")
NO_DESTINATION = Cause(5103, "{field}: the event destination {id} does not exist.")
ARN = Cause(5120, "{field} is not an ARN: {value!r}.")
ROLE_ARN = Cause(5104, "{field} is not the ARN of a role: {value!r}.")
FORMAT = Cause(None, "format must be json, not {value!r}.")
AUTH_COUNT = Cause(5116, "{field} takes one of role and creds, and has {count}.")
AUTH_MISSING = Cause(5106, "{field} is required.")
AUTH_EMPTY = Cause(5107, "{field} needs one of role and creds, and has none.")
TARGET_FIXED = Cause(5108, "A destination's target cannot change from {old} to {new}.")
DESTINATION_IN_USE = Cause(5112, "The event destination {id} is in use by {user}.")
SOURCE_DUPLICATE = Cause(5127, "The subscription has a source of type {value!r} already.")
EVENT_TYPE = Cause(238, "{value!r} is not an event type.")
EVENT_TYPE_MISSING = Cause(5125, "type is required.")
