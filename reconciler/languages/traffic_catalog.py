"""The vocabulary of traffic policies as data: actions with their settings, variables, functions and methods.

The tables can be compared with the platform's documentation line by line. Where the documentation is incomplete or
contradictory, the tables accept the widest form. `kinds.rules.traffic_policy` checks documents and `cel_check` checks
expressions against these tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from msgspec import Struct, field

PHASES: Final = {
    "on_tcp_connect": "T",
    "on_http_request": "R",
    "on_http_response": "S",
    "on_event_stream_message": "E",
}
OLD_PHASES: Final = {"inbound": "on_http_request or on_tcp_connect", "outbound": "on_http_response"}

# Each line: the type, the phases that it may stand in (letters of PHASES), its settings. Of a setting: `!` is required,
# `$` takes ${…}, `~` holds expressions, `*` has keys that the user chooses, `#` is secret with all that is inside,
# `=a|b` has these values; a dot leads into a map, or into each map of a list. A `*` alone: settings are not documented.
_ACTIONS: Final = """
add-headers RS headers!$*
ai-gateway R on_error=halt|continue total_timeout per_request_timeout max_input_tokens max_output_tokens headers$* \
query_params$* body$* providers$* only_allow_configured_providers only_allow_configured_models \
model_selection.strategy api_key_selection.strategy
basic-auth R credentials!$*# realm enforce
circuit-breaker R error_threshold volume_threshold window_duration tripped_duration num_buckets enforce
close-connection RT
compress-response RS algorithms=gzip|deflate|br|compress
custom-response RS status_code body$ headers$*
deny RT status_code
forward-internal RT url!$ on_error=halt|continue binding=internal
http-request RS url!$ method=GET|PUT|POST|PATCH|DELETE|OPTIONS query_params.key query_params.value$ headers$* body$ \
max_redirects timeout retry_condition~ on_error=halt|continue
jwt-validation R issuer!.allow_list!.value!$ audience.allow_list!.value http!.tokens!.type! http.tokens.method! \
http.tokens.name!$ http.tokens.prefix$ jws!.allowed_algorithms! jws.keys!.sources!.additional_jkus!$ \
jws.keys.identification.token_claims
log RST metadata!$*
oauth R provider!=amazon|facebook|github|gitlab|google|linkedin|microsoft|twitch client_id$ client_secret$# scopes \
auth_id authz_url_params* max_session_duration idle_session_timeout userinfo_refresh_interval allow_cors_preflight \
auth_cookie_domain
openid-connect R issuer_url! client_id$ client_secret$# scopes auth_id authz_url_params* max_session_duration \
idle_session_duration userinfo_refresh_interval allow_cors_preflight auth_cookie_domain
owasp-crs-request R on_error=halt|continue process_body exclude_rule_ids
owasp-crs-response S on_error=halt|continue process_body exclude_rule_ids
rate-limit R name! algorithm!=sliding_window capacity! rate! bucket_key!~ enforce
redirect R from$ to!$ status_code=301|302|303|307|308 headers$*
remove-headers RS headers!
request-body-find-replace R replacements!.from!$ replacements.to$
response-body-find-replace S replacements!.from!$ replacements.to$
restrict-ips RST enforce allow$ deny$ ip_policies
saml R idp_metadata# *
set-vars RST vars!$*
sse-find-replace E replacements!.field$ replacements.from!$ replacements.to$
terminate-tls T min_version=1.2|1.3 max_version=1.2|1.3 server_private_key$# server_certificate$ \
mutual_tls_certificate_authorities$ mutual_tls_verification_strategy=require-and-verify|require-any|request
url-rewrite R from$ to!$
user-agent-filter R *
verify-webhook R provider! secret!$# enforce
"""
OLD_ACTIONS: Final = {"oidc": "openid-connect", "webhook-validation": "verify-webhook"}
DEPRECATED_ACTIONS: Final = {
    "ai-gateway": "an endpoint that has it keeps it, and a new one may be refused; set up a gateway in the platform's "
    "AI gateway service, which is outside this API, and remove the action once its clients use that"
}
OLD_SETTINGS: Final = {
    ("custom-response", "content"): "body",
    ("openid-connect", "scope"): "scopes",
    ("circuit-breaker", "rolling_window"): "window_duration",
    ("circuit-breaker", "error_threshold_percentage"): "error_threshold",
}

# Each line: a type, then the variables of it. A variable may be a text and have members besides.
_ENTITY: Final = "country,locality,organization,organizational_unit,postal_code,province,street_address"
_VARIABLES: Final = f"""
string conn.{{client,server}}_ip conn.server_region conn.geo.{{city,country,country_code,latitude,longitude,radius,\
subdivision}} conn.{{client,server}}_ip.as.organization
string conn.{{client,server}}_ip.geo.location.{{city,continent,country,country_code,latitude,longitude,metro_code,\
postal_code,radius,subdivision,timezone}}
string conn.{{client,server}}_ip.geo.registered_location.{{city,continent,country,country_code,metro_code,subdivision,\
timezone}}
string conn.k8s.pod.id conn.k8s.pod.metadata.{{name,namespace,error_code,error_message}}
string conn.tls.{{cipher_suite,ja4_fingerprint,negotiated_alpn,sni,version}}
string conn.tls.{{client,server}}.{{issuer,subject,san,serial_number,signature_algorithm}} conn.tls.client.pem
string conn.tls.{{client,server}}.{{issuer,subject}}.common_name
string endpoint.{{addr,host,id,url,protocol}} req.{{host,id,location,method,version}} req.content_type
string req.content_type.raw req.url req.url.{{authority,host,path,query,raw,raw_path,scheme,uri,user_password}}
string req.user_agent req.user_agent.{{name,version,os,os_version,device,url}}
string res.location res.content_type res.content_type.raw
int conn.bytes_{{in,out}} conn.{{client,server}}_port conn.{{client,server}}_ip.as.number endpoint.port
int req.content_length req.url.port res.content_length res.status_code
bool conn.{{client,server}}_ip.{{is_on_blocklist,is_tor_node}} conn.tls.session_resumed
bool conn.{{client,server}}_ip.geo.{{location,registered_location}}.is_eu
bool req.user_agent.is_{{mobile,tablet,desktop,bot}}
timestamp conn.ts.{{start,end}} conn.tls.{{client,server}}.validity.not_{{after,before}}
timestamp req.ts.{{body_received,header_received}}
list<string> conn.{{client,server}}_ip.categories {{req,res}}.content_encoding
list<string> conn.tls.{{client,server}}.{{issuer,subject}}.{{{_ENTITY}}}
list<string> conn.tls.{{client,server}}.san.{{dns_names,email_addresses,ip_addresses,uris}}
list<map<string,dyn>> conn.tls.{{client,server}}.extensions
map<string,string> conn.k8s.pod.metadata.annotations {{req,res}}.content_type.parameters
map<string,list<string>> {{req,res}}.{{headers,trailers}} req.url.query_params
map<string,list<map<string,dyn>>> {{req,res}}.cookies
dyn vars time.now
"""
# Results of actions, below `actions.ngrok`. A result that an action did not set is absent; types are not documented.
_RESULTS: Final = """
dyn add_headers.headers_added
dyn basic_auth.credentials.{presented,authorized,username}
dyn {compress,compress_response}.{already_compressed,negotiated_algorithm}
dyn forward_internal.url
dyn http_request.attempts http_request.req.{method,header,url,body}
dyn http_request.res.{resolved_ip,header,status_code,time_ms,body}
dyn jwt_validation.tokens log.metadata
dyn {oauth,oidc}.identity.{id,email,name,provider_user_id,current_provider_session_id,current_session_id}
dyn {oauth,oidc}.{access_token,refresh_token,expires_at,session_timed_out,session_max_duration_reached}
dyn {oauth,oidc}.{userinfo_refreshed,user_info_refreshed,identity_token}
dyn owasp_crs_{request,response}.{decision,anomaly_score,anomaly_score_threshold,matched_rules}
dyn rate_limit.{bucket_key,limited} {redirect,url_rewrite}.{matches,url} remove_headers.headers_removed
dyn {request_body,response_body,sse}_find_replace.replacements restrict_ips.{action,matched_cidr}
dyn terminate_tls.{cipher_suite,sni,version,warnings,client,server,error_code,error_message}
dyn verify_webhook.verified
dyn ai_gateway.{status,client,model_selection,models_tried,success,input_ngrok_tokens,output_ngrok_tokens}
dyn ai_gateway.gateway_latency_ms
dyn {forward_internal,http_request,jwt_validation,oauth,oidc,owasp_crs_request,owasp_crs_response,rate_limit,redirect,\
url_rewrite,restrict_ips,terminate_tls,verify_webhook,ai_gateway}.error.{code,message}
"""
_RETRY: Final = "int attempts\ndyn last_attempt\n"  # in `retry_condition` only

# Each line: `name(types) type`, or for a method `receiver.name(types) type`. Functions of the language and of its
# extension for texts are not repeated.
FUNCTIONS: Final = """
getReqCookie(string) map<string,dyn>
getResCookie(string) map<string,dyn>
getReqHeader(string) list<string>
getResHeader(string) list<string>
getQueryParam(string) list<string>
hasReqCookie(string) bool
hasResCookie(string) bool
hasReqHeader(string) bool
hasResHeader(string) bool
hasQueryParam(string) bool
inCidrRange(string,string) bool
inCidrRanges(string,list<string>) bool
base64.decode(string) bytes
base64.encode(bytes) string
base64.encode(string) string
basic_auth.encode(string,string) string
hash.{crc32,crc64,md5,sha1,sha256,sha512,xxhash64}(string) string
hash.{crc32,crc64,md5,sha1,sha256,sha512,xxhash64}(string,string) string
json.decode(string) dyn
json.encode(dyn) string
queryString.decode(string) map<string,dyn>
queryString.encode(map<string,dyn>) string
rand.double() double
rand.int() int
rand.int(int,int) int
secrets.get(string,string) string
url.escape(string) string
url.unescape(string) string
url.parse(string) dyn
lists.range(int) list<int>
"""
METHODS: Final = """
string.{crc32,crc64,md5,sha1,sha256,sha512,xxhash64}() string
string.{crc32,crc64,md5,sha1,sha256,sha512,xxhash64}(string) string
string.{lower,upper,decodeBase64,encodeBase64,escapeUrl,unescapeUrl}() string
string.{decodeJson,parseUrl}() dyn
string.decodeQueryString() map<string,dyn>
string.{isJson,isPrivateIp,isQueryString,isURL}() bool
list<dyn>.slice(int,int) list<dyn>
list<dyn>.flatten() list<dyn>
list<dyn>.flatten(int) list<dyn>
list<dyn>.{sort,distinct}() list<dyn>
list<dyn>.encodeJson() string
map<string,dyn>.{encodeJson,encodeQueryString}() string
"""
# Names of the language itself, for suggestions.
OWN_FUNCTIONS: Final = frozenset(
    "bool bytes double duration dyn has int matches size string timestamp type uint strings.quote".split()  # noqa: SIM905
)
OWN_METHODS: Final = frozenset(
    """
    all charAt contains endsWith exists exists_one filter format getDate getDayOfMonth getDayOfWeek getDayOfYear
    getFullYear getHours getMilliseconds getMinutes getMonth getSeconds indexOf join lastIndexOf lowerAscii map matches
    replace reverse size sortBy split startsWith substring trim upperAscii
    """.split()  # noqa: SIM905 - as a paragraph they can be read
)
OTHER_LANGUAGES: Final = {  # name in other languages, and the name here
    "append": "+", "has": "in", "identity": "actions.ngrok.oauth.identity", "includes": "contains", "len": "size",
    "length": "size", "request": "req", "response": "res", "toLowerCase": "lower", "toUpperCase": "upper",
}  # fmt: skip


class Setting(Struct, frozen=True):
    """A setting of an action. `settings`: those below it. `is_open`: the user chooses their names. `is_secret`: with
    all that is inside."""

    is_required: bool = False
    is_template: bool = False
    is_expression: bool = False
    is_open: bool = False
    is_secret: bool = False
    values: tuple[str, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)


class Action(Struct, frozen=True):
    """An action. `phases`: letters of PHASES. `is_open`: it takes settings that are not documented."""

    phases: str
    is_open: bool
    settings: Mapping[str, Setting]


@cache
def actions() -> Mapping[str, Action]:
    """Every action, by its type."""
    by_type: dict[str, Action] = {}
    for line in _ACTIONS.strip().splitlines():
        name, phases, *words = line.split()
        by_type[name] = Action(phases, "*" in words, _settings([word for word in words if word != "*"]))
    return by_type


def _settings(words: list[str]) -> dict[str, Setting]:
    below: dict[str, list[str]] = {}
    by_name: dict[str, Setting] = {}
    for word in words:
        head, _, values = word.partition("=") if "." not in word.partition("=")[0] else (word, "", "")
        head, _, rest = head.partition(".")
        name = head.rstrip("!$~*#")
        marks = head[len(name) :]
        below.setdefault(name, []).extend([rest] if rest else [])
        by_name[name] = by_name.get(name) or Setting(
            "!" in marks,
            "$" in marks,
            "~" in marks,
            "*" in marks,
            "#" in marks,
            tuple(values.split("|")) if values else (),
        )
    return {
        name: Setting(
            setting.is_required,
            setting.is_template,
            setting.is_expression,
            setting.is_open,
            setting.is_secret,
            setting.values,
            _settings(rest),
        )
        for name, setting in by_name.items()
        for rest in [below[name]]
    }


@cache
def variables() -> Mapping[str, str]:
    """The type of every variable, by its dotted name."""
    found: dict[str, str] = {}
    for table, prefix in ((_VARIABLES, ""), (_RESULTS, "actions.ngrok."), (_RETRY, "")):
        for line in table.strip().splitlines():
            kind, *names = line.split()
            found |= {prefix + full_name: kind for name in names for full_name in _expand_braces(name)}
    return found


@cache
def members() -> Mapping[str, frozenset[str]]:
    """Names of the members below each prefix of a variable, by the dotted prefix; the roots are below ""."""
    found: dict[str, set[str]] = {"": set()}
    for name in variables():
        parts = name.split(".")
        for index, part in enumerate(parts):
            found.setdefault(".".join(parts[:index]), set()).add(part)
    return {name: frozenset(below) for name, below in found.items()}


def signatures(table: str) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Yields receiver (empty for a function), name, types of arguments and type of result for each line of a table."""
    for line in table.strip().splitlines():
        called, _, rest = line.partition("(")
        arguments, _, result = rest.partition(") ")
        for name in _expand_braces(called):
            receiver, _, method = name.rpartition(".") if table is METHODS else ("", "", name)
            yield (
                receiver,
                method,
                tuple(argument for argument in re.split(r",(?![^<]*>)", arguments) if argument),
                result,
            )


@cache
def functions() -> frozenset[str]:
    """Names of all functions, with those of the language itself."""
    return OWN_FUNCTIONS | {name for _, name, _, _ in signatures(FUNCTIONS)}


@cache
def methods() -> frozenset[str]:
    """Names of all methods, with those of the language itself."""
    return OWN_METHODS | {name for _, name, _, _ in signatures(METHODS)}


def _expand_braces(text: str) -> Iterator[str]:
    """Expands `x.{a,b}` into `x.a` and `x.b`."""
    before, opening, rest = text.partition("{")
    if not opening:
        yield text
        return
    inside, _, after = rest.partition("}")
    for option in inside.split(","):
        yield from _expand_braces(before + option + after)
