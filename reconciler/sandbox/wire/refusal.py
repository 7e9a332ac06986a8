"""The catalog of the errors that the emulated API returns: error code, HTTP status and message.

Codes are those of the public service (`ERR_NGROK_446`) where one is documented for the rule; otherwise the response has
no code. Clients distinguish errors by code, because nearly all of them, including conflicts, have the status 400.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Refusal(Exception):
    """An error response. `code` is the number of the platform's error code, None if the rule has none."""

    def __init__(self, code: int | None, status: int, msg: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(msg)
        self.code = code
        self.status = status
        self.msg = msg
        self.headers = headers or {}


class Cause(Struct, frozen=True):
    """An error of the catalog. Calling it with the fields of its message returns the exception to raise."""

    code: int | None
    text: str
    status: int = 400

    def __call__(self, **named: object) -> Refusal:
        return Refusal(self.code, self.status, self.text.format(**named))


def check_choice(value: str, choices: Iterable[str], cause: Cause) -> None:
    """Raises the error unless the value is one of the choices."""
    if value not in choices:
        raise cause(value=value)


# --- the request itself -----------------------------------------------------------------------------------------------

NO_KEY = Cause(200, "The request has no API key. Send it in the header Authorization: Bearer <key>.", 401)
BAD_AUTHORIZATION = Cause(
    201, "The Authorization header must use the scheme Bearer, or Basic with the key as password.", 401
)
WRONG_KEY = Cause(203, "The API key is invalid.", 403)
KEY_OF_INACTIVE = Cause(None, "The owner of the API key, {id}, is not active.", 403)
FOREIGN_HOST = Cause(
    None, "The header {header} has the value {value!r}: this path does not accept requests of web pages.", 403
)
NO_SUCH_PATH = Cause(None, "The path {path} does not exist.", 404)
NOT_FOUND = Cause(None, "Resource not found", 404)  # without a full stop, as the platform answers
MALFORMED_PATH_ID = Cause(222, "{id!r} is not a valid id. Ids consist of {prefix} and 27 letters and digits.", 404)
WRONG_PATH_ID = Cause(
    227, "{id!r} is the id of another type of resource. The ids of this resource begin with {prefix}.", 404
)
METHOD_NOT_ALLOWED = Cause(None, "The method {method} is not supported for this path.", 405)
UNSUPPORTED_TYPE = Cause(210, "The Content-Type {type!r} is not supported. Send application/json.")
UNEXPECTED_BODY = Cause(211, "A {method} request must not have a body.")
TRUNCATED_BODY = Cause(212, "The JSON body of the request is incomplete.")
UNPARSABLE_BODY = Cause(213, "The body of the request is not valid JSON: {why}.")
TOO_LARGE = Cause(None, "The body of the request is too large.", 413)
UNKNOWN_FIELD = Cause(214, "The field {field!r} is not supported. Supported fields: {supported}.")
OTHER_PARAMETER = Cause(214, "The field {field!r} differs from {value!r} in the path. Omit it, or send the same value.")
WRONG_TYPE = Cause(215, "The field {field} must be {wanted}.")
NO_TYPE = Cause(216, "A request with a body must have the header Content-Type: application/json.")
BAD_VERSION = Cause(217, "The API version {version!r} is not supported. Send version 2.")
NO_VERSION = Cause(218, "The request has no API version. Send the header Service-Version: 2 or Ngrok-Version: 2.")
MALFORMED_ID = Cause(223, "{field}: {id!r} is not a valid id.")
OVER_BUDGET = Cause(226, "The rate limit of {limit} requests per minute is exceeded.", 429)
TOO_MANY_AT_ONCE = Cause(225, "The limit of {limit} concurrent requests is exceeded.", 429)
CREATES_OVER_BUDGET = Cause(None, "The limit of new resources at {path} is exceeded.", 429)
WRONG_ID = Cause(227, "{field}: {id!r} is the id of another type of resource. The id must begin with {wanted}.")
SEVERAL_WRONG_ID = Cause(
    243, "{field}: {id!r} is the id of another type of resource. The id must begin with one of {wanted}."
)
UNPARSABLE_QUERY = Cause(230, "The query string cannot be parsed.")
UNKNOWN_PARAMETER = Cause(231, "The query parameter {name!r} is not supported. Supported parameters: {supported}.")
REPEATED_PARAMETER = Cause(232, "The query parameter {name!r} must not be repeated.")
BAD_LIMIT = Cause(233, "limit must be a number from 1 to 100, not {value}.")
LIMIT_NO_NUMBER = Cause(244, "limit must be a number from 1 to 100, not {value!r}.")
FILTER = Cause(250, "The filter is invalid: {why}.")
BAD_TIMESTAMP = Cause(241, "{field} must be an RFC 3339 timestamp, not {value!r}.")

# --- rules that many kinds share --------------------------------------------------------------------------------------

REQUIRED = Cause(None, "{field} is required.")
NOT_A_CHOICE = Cause(None, "{field} must be one of {choices}, not {value!r}.")
TOO_LONG = Cause(100, "{field} has {size} bytes; at most {limit} are allowed.")
NOT_BY_PATCH = Cause(None, "{field} cannot be removed by an update. Send DELETE {path}.")
NO_SUCH_OBJECT = Cause(None, "{field}: {id} does not exist.")
IN_USE = Cause(None, "{id} is in use by {user}.")
RAW_READ_ONLY = Cause(None, "{id} was stored with /_sandbox/objects. It can be deleted, but not updated.")
RAW_DUPLICATE = Cause(None, "An object with the id {id} already exists at {path}.")
CONTROL = Cause(None, "The request is invalid: {why}.")

# --- endpoints --------------------------------------------------------------------------------------------------------

ENDPOINT_TYPE = Cause(248, "type must be cloud, not {value!r}.")
ENDPOINT_PORT = Cause(18003, "A tcp URL must have a port: {url!r}.")
ENDPOINT_URL = Cause(249, "{url!r} is not a URL of the form <scheme>://<host>[:<port>].")
TRAILING_SLASH = Cause(9038, "The URL must not end with a slash. Use {url!r}.")
ENDPOINT_POLICY = Cause(18002, "traffic_policy: {why}.")
ENDPOINT_UNCHANGED = Cause(18004, "The update of the endpoint contains no changes.")
ENDPOINT_SCHEME = Cause(18005, "The scheme of an endpoint URL cannot be changed from {old} to {new}.")
ENDPOINT_UNRESERVED = Cause(18006, "{host!r} is not reserved. Reserve the domain or address first.")
ENDPOINT_DUPLICATE = Cause(18009, "An endpoint with the URL {value!r} already exists.")
POOLING_BESIDE_ONE = Cause(
    18016, "Another endpoint uses the URL {url!r} without pooling. Enable pooling on all endpoints of the URL."
)
NO_POOLING_BESIDE_POOL = Cause(
    18017, "The endpoints with the URL {url!r} use pooling. Set pooling_enabled to share the URL."
)
ENDPOINT_REQUIRED = Cause(18015, "{field} is required for a cloud endpoint.")
ENDPOINT_READ_ONLY = Cause(None, "Only cloud endpoints can be updated or deleted; {id} is of type {type}.")
BINDING_UNKNOWN = Cause(15005, "{value!r} is not a valid binding. Valid bindings: public, internal, kubernetes.")
BINDING_REPEATED = Cause(15006, "bindings contains {value!r} more than once.")
BINDING_INTERNAL = Cause(
    9029, "Hosts below .internal must have the binding internal, and other hosts must not: {host!r}."
)
BINDING_KUBERNETES = Cause(18018, "The binding kubernetes supports http, tls and tcp, not {scheme}.")

# --- edges and their modules ------------------------------------------------------------------------------------------

HOSTPORT_MALFORMED = Cause(7104, "The hostport {value!r} is not of the form host:port.")
HOSTPORT_PORT = Cause(7116, "The hostport {value!r} must have port 443.")
HOSTPORT_DOMAIN = Cause(7117, "The domain of the hostport {value!r} is not reserved.")
HOSTPORT_ADDRESS = Cause(7113, "The address {value!r} is not reserved.")
HOSTPORT_OF_DOMAIN = Cause(7120, "A TCP edge requires reserved addresses; {value!r} is a domain.")
HTTPS_HOSTPORT_OF_ADDRESS = Cause(7121, "An HTTPS edge requires reserved domains; {value!r} is a TCP address.")
TLS_HOSTPORT_OF_ADDRESS = Cause(7133, "A TLS edge requires reserved domains; {value!r} is a TCP address.")
HOSTPORT_TAKEN = Cause(7122, "The hostport {value!r} is already in use.")
TERMINATE_AT = Cause(224, "terminate_at must be edge or upstream, not {value!r}.")
NO_TERMINATE_AT = Cause(7109, "terminate_at is not supported: an HTTPS edge always terminates TLS at the edge.")
MIN_VERSION_UPSTREAM = Cause(7032, "min_version must be null when terminate_at is upstream.")
MIN_VERSION = Cause(219, "min_version {value!r} is not a valid TLS version.")
MUTUAL_TLS_UPSTREAM = Cause(1694, "mutual_tls requires that TLS is terminated at the edge.")
MODULES_UPSTREAM = Cause(7062, "Modules that are not supported when TLS is terminated upstream: {modules}.")
NO_BACKEND = Cause(None, "{field}: the backend {id} does not exist.")
BACKEND_ID = Cause(242, "{field}: {id!r} is not a backend id.")
MODULE_WITHOUT_POLICIES = Cause(7025, "{field} must name at least one IP policy.")
NO_POLICY_OF_MODULE = Cause(7007, "{field}: the IP policy {id} does not exist.")
POLICY_ID = Cause(229, "{field}: {id!r} is not an IP policy id.")
NO_AUTHORITY = Cause(1672, "{field}: the certificate authority {id} does not exist.")
AUTHORITY_ID = Cause(228, "{field}: {id!r} is not a certificate authority id.")
AUTHORITY_IN_USE = Cause(None, "The certificate authority {id} is in use by {user}.")
MODULE_POLICY = Cause(2200, "{field}: {why}.")
ROUTE_ELSEWHERE = Cause(7110, "The route {id} belongs to another edge.", 404)
ROUTE_DUPLICATE = Cause(7126, "The edge already has a route that matches {value}.")
ROUTE_MATCH_MISSING = Cause(7123, "match is required.")
ROUTE_MATCH_TYPE = Cause(7130, "match_type must be exact_path or path_prefix, not {value!r}.")
ROUTE_MATCH = Cause(7131, "match must begin with a slash, not {value!r}.")
SAML_METADATA_MISSING = Cause(7091, "{field} is required.")
SAML_METADATA = Cause(7083, "idp_metadata is not a valid EntityDescriptor: {why}.")
NAMEID_FORMAT = Cause(1693, "nameid_format {value!r} is not supported.")
LOGIN_COUNT = Cause(7079, "A route can have only one of saml, oidc and oauth, not {names}.")
LOGIN_ON_EDGE = Cause(7155, "Only one route of an edge can authenticate users; the route {id} already does.")
OIDC_ISSUER = Cause(7088, "{field} is required.")
OIDC_CLIENT = Cause(7089, "{field} is required.")
OIDC_SECRET = Cause(7090, "{field} is required.")
OAUTH_PROVIDERS = Cause(7036, "oauth.provider must have exactly one member, not {count}.")
OAUTH_NO_PROVIDER = Cause(7037, "oauth.provider must have exactly one member.")
OAUTH_CLIENT = Cause(7033, "{field}: client_id and client_secret must be set together.")
OAUTH_SCOPES = Cause(7034, "{field}: scopes require client_id and client_secret of an application of your own.")
_BREAKER = "circuit_breaker.{field} must be {wanted}, not {value}."
BREAKER_THRESHOLD = Cause(7011, _BREAKER)
BREAKER_TRIPPED = Cause(7016, _BREAKER)
BREAKER_WINDOW = Cause(7017, _BREAKER)
BREAKER_BUCKETS = Cause(7018, _BREAKER)
WEBHOOK_PROVIDER = Cause(7030, "{value!r} is not a supported webhook provider.")
WEBHOOK_SECRET = Cause(7027, "The webhook provider {value} requires a secret.")
WEBHOOK_NO_SECRET = Cause(7026, "The webhook provider sns does not support a secret.")

# --- credentials, keys, bots ------------------------------------------------------------------------------------------

ACL_RULE = Cause(600, "{value!r} is not a valid ACL rule. Use bind:<host>, bind:<key>=<value> or *.")
CREDENTIAL_UNCHANGED = Cause(606, "The update of the credential contains no changes.")
SSH_KEY_DUPLICATE = Cause(609, "The public key is already registered.")
SSH_KEY_OF_OTHER = Cause(610, "The public key is already registered by another account.")
SSH_KEY_EMPTY = Cause(611, "public_key is required.")
SSH_KEY_INVALID = Cause(612, "public_key is not a valid public key: {why}.")
OWNER_BY_ADMIN = Cause(630, "{field}: only an administrator can set an owner other than the owner of the API key.")
OWNER_INACTIVE = Cause(636, "{field}: {id} is not active.")
BOT_BY_ADMIN = Cause(4111, "Only an administrator can create, update or delete bot users.")
BOT_NAME = Cause(4109, "name must not be empty.")
BOT_DUPLICATE = Cause(4112, "A bot user with the name {value!r} already exists.")

REPORTED_URL = Cause(None, "urls: {value!r} is not a valid URL.")

# --- IP restrictions and policies -------------------------------------------------------------------------------------

POLICY_UNCHANGED = Cause(1400, "The update of the IP policy contains no changes.")
POLICY_RULE_UNCHANGED = Cause(1401, "The update of the IP policy rule contains no changes.")
CIDR_INVALID = Cause(1406, "{value!r} is not a valid CIDR.")
CIDR_DUPLICATE = Cause(1408, "The IP policy already has a rule for {value}.")
CIDR_HOST_BITS = Cause(1409, "{value} is not a network address. Use {network}.")
CIDR_MASK = Cause(1413, "The CIDR {value!r} has no prefix length.")
NO_POLICY = Cause(1414, "{field}: the IP policy {id} does not exist.")
POLICY_ID_OF_RULE = Cause(1414, "{field}: {id!r} is not an IP policy id.")
POLICY_IN_USE = Cause(1420, "The IP policy {id} is in use by {user}.")
LAST_RULE = Cause(
    1419, "The last rule of the IP policy {policy} cannot be deleted: the policy restricts the dashboard."
)
POLICY_ACTION = Cause(1422, "action must be allow or deny, not {value!r}.")
POLICY_HAS_NO_ACTION = Cause(1423, "action is not a field of an IP policy. Set it on the rules of the policy.")
NO_POLICY_OF_RESTRICTION = Cause(1801, "{field}: the IP policy {id} does not exist.")
RESTRICTION_DUPLICATE = Cause(1802, "An IP restriction of type {value} already exists.")
RESTRICTION_TYPE = Cause(1803, "type must be one of dashboard, api, agent, endpoints, not {value!r}.")
RESTRICTION_EMPTY = Cause(1804, "An IP restriction requires at least one IP policy.")

# --- domains and addresses --------------------------------------------------------------------------------------------

REGION = Cause(400, "region must be one of au, eu, ap, us, jp, in, sa, not {value!r}.")
ADDRESS_REGION = Cause(500, "region must be one of au, eu, ap, us, jp, in, sa, not {value!r}.")
WILDCARD = Cause(402, "Only the first label of a domain can be a wildcard: {value!r}.")
INGRESS_WILDCARD = Cause(402, "The domain of an agent ingress cannot be a wildcard: {value!r}.")
WILDCARD_PART = Cause(403, "A wildcard must be a whole label: {value!r}.")
WILDCARD_OF_ALL = Cause(416, "{value!r} cannot be reserved: it covers all domains of the platform.")
DOMAIN_CHARACTER = Cause(406, "{sign!r} is not allowed in a domain: {value!r}.")
DOMAIN_DUPLICATE = Cause(413, "The domain {value!r} is already reserved.")
DOMAIN_OF_OTHER = Cause(414, "The domain {value!r} is already reserved by another account.")
DOMAIN_UNCHANGED = Cause(422, "The update of the reserved domain contains no changes.")
PUNYCODE = Cause(429, "{value!r} is not valid punycode.")
CERTIFICATE_TWICE = Cause(434, "certificate_id and certificate_management_policy cannot be combined.")
CERTIFICATE_NOT_UPLOADED = Cause(None, "certificate_id: {id} is managed by the platform. Use an uploaded certificate.")
MANAGED_CERTIFICATE = Cause(
    436, "A managed certificate cannot be detached. Detach the certificate management policy instead."
)
POLICY_ON_OWN_DOMAIN = Cause(439, "certificate_management_policy must be null for a domain of the platform.")
UPLOAD_ON_OWN_DOMAIN = Cause(440, "A domain of the platform cannot have an uploaded certificate.")
UNDERSCORE = Cause(438, "A domain must not contain an underscore: {value!r}.")
DOMAIN_IN_USE = Cause(446, "The domain {id} is in use by {user}.")
NOT_QUALIFIED = Cause(448, "{value!r} is not a fully qualified domain name.")
DOMAIN_NAME = Cause(449, "Exactly one of domain and name (deprecated) is required.")
DEV_DOMAIN = Cause(458, "The domain {id} is assigned to the account and cannot be updated or deleted.")
LABEL_TOO_LONG = Cause(513, "{value!r} has a label of more than 63 bytes.")
DOMAIN_TOO_LONG = Cause(514, "The domain has more than 253 bytes.")
ADDRESS_UNCHANGED = Cause(506, "The update of the reserved address contains no changes.")
ADDRESS_IN_USE = Cause(None, "The address {id} is in use by {user}.")
INGRESS_OWN_DOMAIN = Cause(
    6705, "The domain of an agent ingress must be your own; {value!r} is a domain of the platform."
)
INGRESS_DUPLICATE = Cause(6706, "An agent ingress for {value!r} already exists.")
AUTHORITY = Cause(1908, "authority must be letsencrypt, not {value!r}.")
KEY_TYPE = Cause(1909, "private_key_type must be rsa or ecdsa, not {value!r}.")

# --- operators of Kubernetes ------------------------------------------------------------------------------------------

OPERATOR_REQUEST = Cause(None, "{field} is not a certificate signing request in PEM.")

# --- backends ---------------------------------------------------------------------------------------------------------

NO_CHILD = Cause(6501, "{field}: the backend {id} does not exist.")
CHILD_ID = Cause(6526, "{field}: {id!r} is not a backend id.")
CHILD_KIND = Cause(6527, "{field}: {id!r} is not a backend id. Backend ids begin with one of {wanted}.")
BACKEND_IN_USE = Cause(6502, "The backend {id} is in use by {user}.")
STATUS_CODE = Cause(6517, "status_code must be from 100 to 599, not {value}.")
FAILOVER_CYCLE = Cause(None, "A failover backend cannot refer to {id}: it would contain itself.")
WEIGHTED_CYCLE = Cause(None, "A weighted backend cannot refer to {id}: it would contain itself.")
FAILOVER_NESTED = Cause(6513, "A failover backend can contain at most {most} failover backends, not {count}.")
STATIC_ADDRESS = Cause(6505, "The address {value!r} is not of the form host:port.")
STATIC_INVALID = Cause(6506, "The address {value!r} is invalid. Use a host and a port from 1 to 65535.")
STATIC_HOST = Cause(6507, "The address {value!r} has no host.")
WEIGHT = Cause(6512, "The weight of {id} must be from 0 to 10000, not {value}.")

# --- certificates and keys --------------------------------------------------------------------------------------------

ENCRYPTED_KEY = Cause(1902, "private_key_pem is encrypted.")
CERTIFICATE_INVALID = Cause(1900, "certificate_pem is not a valid certificate: {why}.")
PRIVATE_KEY_INVALID = Cause(1903, "private_key_pem is not a valid private key: {why}.")
SEVERAL_AUTHORITIES = Cause(1912, "ca_pem contains more than one certificate.")
NOT_AN_AUTHORITY = Cause(1913, "ca_pem is not the certificate of a certificate authority.")
NOT_PEM = Cause(1920, "ca_pem is not valid PEM: {why}.")
AUTHORITY_SIZE = Cause(1921, "ca_pem has more than {limit} bytes.")
NO_CA_PEM = Cause(1919, "ca_pem is required.")
KEY_MISMATCH = Cause(1923, "private_key_pem does not match certificate_pem.")
KEY_IS_CERTIFICATE = Cause(1924, "private_key_pem contains a certificate.")
CERTIFICATE_IS_KEY = Cause(1925, "certificate_pem contains a private key.")
CHAIN_ORDER = Cause(1926, "certificate_pem: each certificate must be followed by its issuer's certificate.")
NO_KEY_PEM = Cause(1901, "private_key_pem is required.")
NO_CERTIFICATE_PEM = Cause(1922, "certificate_pem is required.")
NO_CERTIFICATE = Cause(1965, "{field}: the certificate {id} does not exist.")
NO_SSH_AUTHORITY = Cause(1949, "{field}: the SSH certificate authority {id} does not exist.")
SSH_AUTHORITY_MISSING = Cause(1951, "ssh_certificate_authority_id is required.")
HOST_KEY_MISSING = Cause(1952, "public_key is required.")
HOST_KEY_INVALID = Cause(1934, "public_key is not a valid key in authorized_keys format: {why}.")
NOT_A_DURATION = Cause(1963, "valid_until of an SSH host certificate must be later than valid_after.")
NO_USER_DURATION = Cause(1962, "valid_until of an SSH user certificate must be later than valid_after.")
PRINCIPALS = Cause(None, "principals can have at most {most} items, not {count}.")
SSH_AUTHORITY_IN_USE = Cause(1964, "The SSH certificate authority {id} is in use: it signed {user}.")
CERTIFICATE_MANAGED = Cause(1966, "The certificate {id} is managed by the platform and cannot be deleted.")
KEY_SIZE = Cause(1939, "key_size must be 2048 or 4096, not {value}.")
KEY_SIZE_OF_RSA = Cause(1940, "key_size is supported for rsa keys only, not for {type}.")
SSH_KEY_TYPE = Cause(1936, "private_key_type must be rsa, ecdsa or ed25519, not {value!r}.")
CURVE = Cause(1941, "elliptic_curve must be 256, 384 or 521, not {value!r}.")
CURVE_OF_ECDSA = Cause(1942, "elliptic_curve is supported for ecdsa keys only, not for {type}.")

# --- vaults -----------------------------------------------------------------------------------------------------------

VAULT_NAME = Cause(23000, "The name of a vault can contain letters, digits, '_', '-', '/' and '.' only: {value!r}.")
VAULT_NOT_EMPTY = Cause(23003, "The vault {id} is not empty: it contains {user}.")
VAULT_DUPLICATE = Cause(23004, "A vault with the name {value!r} already exists.")
NO_VAULT = Cause(None, "{field}: the vault {id} does not exist.")
SECRET_NAME = Cause(24000, "The name of a secret can contain letters, digits, '_', '-', '/' and '.' only: {value!r}.")
SECRET_VALUE = Cause(24003, "value is required.")
SECRET_DUPLICATE = Cause(24005, "The vault already has a secret with the name {value!r}.")

# --- events -----------------------------------------------------------------------------------------------------------

TARGET_COUNT = Cause(5115, "target must have exactly one member, not {count}.")
TARGET_MISSING = Cause(5100, "target must have exactly one member.")
NO_DESTINATION = Cause(5103, "{field}: the event destination {id} does not exist.")
ARN = Cause(5120, "{field} is not an ARN: {value!r}.")
ROLE_ARN = Cause(5104, "{field} is not the ARN of a role: {value!r}.")
FORMAT = Cause(235, "format must be json, not {value!r}.")
AUTH_COUNT = Cause(5116, "{field} must have exactly one of role and creds, not {count}.")
AUTH_MISSING = Cause(5106, "{field} is required.")
AUTH_EMPTY = Cause(5107, "{field} must have exactly one of role and creds.")
TARGET_FIXED = Cause(5108, "The target of an event destination cannot be changed from {old} to {new}.")
DESTINATION_IN_USE = Cause(5112, "The event destination {id} is in use by {user}.")
SOURCE_DUPLICATE = Cause(5127, "The event subscription already has a source of type {value!r}.")
EVENT_TYPE = Cause(238, "{value!r} is not a valid event type.")
EVENT_TYPE_MISSING = Cause(238, "type is required.")
NO_SUBSCRIPTION = Cause(5123, "The event subscription {id} does not exist.", 404)
NO_SOURCE = Cause(5125, "The event subscription {id} has no source of type {value!r}.", 404)
