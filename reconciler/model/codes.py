"""The code of every problem: what it means, why it happens, what to do, and whether `validate --strict` fails on it.

A code never changes once it is released: scripts and code scanners refer to it. `--strict` fails on literal secrets and
on certain mistakes. It never fails on what this version does not know: a newer platform may accept that.
`docs/errors.md` is generated from here.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from reconciler.model.problem import Severity

_WARNING: Final = (Severity.WARNING,)
_EITHER: Final = (Severity.ERROR, Severity.WARNING)


class Code(Struct, frozen=True):
    """`is_strict`: `validate --strict` fails on a warning with this code."""

    meaning: str
    cause: str
    remedy: str
    severities: tuple[Severity, ...] = (Severity.ERROR,)
    is_strict: bool = False


_EXPLAIN: Final = "`reconciler explain Kind.field` shows what the field takes."

_FILES: Final = {
    "invalid-yaml": Code(
        "A file is not valid YAML.",
        "An indentation, a quote or a bracket is wrong at the position that the message names, or a little above it.",
        "Check the indentation, quotes and brackets in that line and the line above.",
    ),
    "unsupported-yaml": Code(
        "A file uses a part of YAML that manifests do not support.",
        "Manifests have no unknown tags, merge keys (`<<`), keys that are "
        "not text, numbers that JSON cannot represent, "
        "or texts that YAML libraries read in different ways.",
        "Write the value out, or quote it if it is text.",
    ),
    "duplicate-key": Code(
        "A key occurs twice in one map.",
        "YAML allows a key once. Parsers that accept a second one ignore one of the values.",
        "Remove one of the two.",
    ),
    "invalid-encoding": Code(
        "A file or value is not UTF-8 text, or contains a control character.",
        "The file was saved in another encoding, or is not text.",
        "Save it as UTF-8, and write control characters as escapes in double quotes.",
    ),
    "limit-exceeded": Code(
        "A file, or what it expands to, is larger than the documented limits.",
        "Files are limited in size, documents, values and depth, so that no file can exhaust time or memory.",
        "Split the file, or use fewer aliases and `for_each` items.",
    ),
    "too-many-problems": Code(
        "A file or resource has more problems than are listed.",
        "The list is cut, because one mistake often causes many problems.",
        "Correct the listed problems first.",
    ),
    "unreadable-file": Code(
        "A file or folder cannot be read.",
        "It does not exist, is not a regular file, is too large, or permissions are missing.",
        "Check the path and the permissions.",
    ),
    "path-outside-project": Code(
        "A path is not inside the project's folder.",
        "Paths are relative to the project, contain no `..`, and no symlink points outside the project.",
        "Move or copy the file into the project's folder.",
    ),
    "several-documents": Code(
        "A file contains several YAML documents, or none, where one is expected.",
        "The project file and environment files are single documents.",
        "Remove the second `---` and what follows it.",
    ),
    "cannot-format": Code(
        "`fmt` cannot format a file, or move a child into its parent, without changing its meaning.",
        "A comment or a text is in a place that the formatter cannot preserve, or no entry can have the child's name.",
        "Move the comment to a line of its own, quote the text, or rename the child, as the message says.",
    ),
}

_VALUES: Final = {
    "unknown-field": Code(
        "A key is not a field of this resource or section.",
        "The name is misspelled, or belongs to another level of the manifest.",
        f"Use a documented name. {_EXPLAIN}",
    ),
    "missing-field": Code(
        "A required field is missing.",
        "Some fields are always required, others only beside certain values of other fields.",
        f"Add the field. {_EXPLAIN}",
    ),
    "wrong-type": Code(
        "A value has the wrong type.",
        "For example, a number where the field takes text, or text where it takes a list.",
        f"Write a value of the expected type. {_EXPLAIN}",
    ),
    "unknown-choice": Code(
        "A value is not one of the field's choices.",
        "The value is misspelled, or this version does not support it.",
        "Use one of the choices that the message lists.",
    ),
    "invalid-value": Code(
        "A value does not have the form that its field requires.",
        "For example, a host name with a scheme, an address without a prefix "
        "length, or text that is not a certificate.",
        f"Correct the value as the message says. {_EXPLAIN}",
    ),
    "value-too-long": Code(
        "A value is longer than the platform accepts.",
        "The platform limits text in bytes of UTF-8, and lists in items.",
        "Shorten the value.",
    ),
    "value-out-of-range": Code(
        "A number is too small or too large.",
        "The platform or this program limits the range of the field.",
        "Use a number within the limits that the message names.",
    ),
    "invalid-name": Code(
        "A name has characters that are not allowed, or is too long.",
        "Names of resources, variables, environments and tunnels have a restricted form.",
        "Use a name of the form that the message describes.",
    ),
    "empty-list": Code(
        "A list is empty where at least one item is required.",
        "The object would let everything or nothing pass, or could not be reached.",
        "Add an item, or leave the field out where it is optional.",
    ),
    "duplicate-item": Code(
        "A list has a duplicate item.",
        "The platform stores equal items once, so that the object would always differ from its manifest.",
        "Remove the duplicate.",
    ),
    "conflicting-fields": Code(
        "Two fields that exclude each other are both set.",
        "The platform accepts one of them.",
        "Remove one of the two.",
    ),
    "field-not-applicable": Code(
        "A field has no effect in combination with the other values.",
        "The field belongs to another kind, type or mode of the object.",
        "Remove the field, or change the value that it depends on.",
    ),
    "deprecated-field": Code(
        "A field is deprecated.",
        "It still works, and a later release of the platform or agent may refuse it.",
        "Use the field that the message names.",
        _WARNING,
    ),
    "key-mismatch": Code(
        "A private key does not belong to its certificate.",
        "The certificate was issued for another key.",
        "Set `private_key_pem` to the key that the certificate was issued for.",
    ),
    "invalid-period": Code(
        "A period of validity ends before it begins.",
        "`valid_until` is not after `valid_after`.",
        "Set `valid_until` to a later time.",
    ),
    "binding-mismatch": Code(
        "The bindings of an endpoint do not fit its host name.",
        "Hosts below `.internal` have the binding `internal`, and no other host has it.",
        "Leave `bindings` out, or change the host name.",
    ),
    "conflicting-agent-configs": Code(
        "Agent configurations that are rendered into one file contradict each other.",
        "Two of the manifests set one setting to different values, or an endpoint and a tunnel have one name.",
        "Set it to the same value, or in one of the manifests only.",
    ),
    "known-after-apply": Code(
        "An agent configuration contains a value that is known only after an apply.",
        "The file is rendered without a request to the platform, so that ids and other outputs are unknown.",
        "Write the value itself instead of a reference.",
    ),
    "unknown-binding": Code(
        "A binding is not known to this version.",
        "The name is misspelled, or the platform added it later.",
        "Check the spelling. A new name of the platform needs no change: this is a warning only.",
        _WARNING,
    ),
    "unknown-event-type": Code(
        "An event type is not known to this version.",
        "The name is misspelled, or the platform added it later.",
        "Check the spelling. A new name of the platform needs no change: this is a warning only.",
        _WARNING,
    ),
    "unknown-provider": Code(
        "A webhook provider is not known to this version.",
        "The name is misspelled, or the platform added it later.",
        "Check the spelling. A new name of the platform needs no change: this is a warning only.",
        _WARNING,
    ),
    "module-without-effect": Code(
        "A module has no effect on traffic that is encrypted up to the upstream.",
        "`tls_termination.terminate_at` is `upstream`, so that the platform does not decrypt the traffic.",
        "Remove the module, or set `tls_termination.terminate_at: edge`.",
        _EITHER,
        is_strict=True,
    ),
}

_TRAFFIC: Final = {
    "traffic-unreadable": Code(
        "A traffic policy is not a readable document.",
        "It is empty, too large, neither JSON nor YAML, or not a mapping of phases to rules.",
        "Write a map of phases, such as `on_http_request`, to lists of rules.",
    ),
    "traffic-shape": Code(
        "A part of a traffic policy has the wrong type.",
        "Phases hold lists of rules, rules are mappings, expressions are texts in a list.",
        "Write the part as the message says.",
    ),
    "traffic-missing": Code(
        "A part of a traffic policy is missing.",
        "A rule needs actions, an action needs a type, and some actions need certain settings.",
        "Add it.",
    ),
    "traffic-key": Code(
        "A rule or action of a traffic policy has an unknown key.",
        "Rules have the keys `name`, `expressions` and `actions`; actions have `type` and `config`.",
        "Correct or remove the key.",
    ),
    "traffic-syntax": Code(
        "An expression of a traffic policy is not valid CEL.",
        "The expression has a syntax error.",
        "Correct the expression at the place that the message names.",
    ),
    "traffic-condition": Code(
        "A condition of a traffic policy does not evaluate to true or false.",
        "The expression evaluates to a text, number or other value.",
        "Compare the value, as in `req.method == 'GET'`.",
    ),
    "traffic-action": Code(
        "A type of action in a traffic policy is not known to this version.",
        "The name is misspelled, or the platform added it later.",
        "Check the spelling. A new name of the platform needs no change: this is a warning only.",
        _WARNING,
    ),
    "traffic-deprecated": Code(
        "A traffic policy has an action that the platform is giving up.",
        "The platform deprecated the action. It may refuse it in a new endpoint.",
        "Use what the message names. This is a warning only.",
        _WARNING,
    ),
    "traffic-empty": Code(
        "A traffic policy is an empty map.",
        "No phase has rules. The platform accepts it, but may require that a cloud endpoint answers its traffic.",
        "Write rules below a phase, such as `on_http_request`. This is a warning only.",
        _WARNING,
    ),
    "traffic-function": Code(
        "An expression of a traffic policy calls an unknown function.",
        "The name is misspelled (an error), or the platform added it later (a warning).",
        "Correct the name.",
        _EITHER,
    ),
    "traffic-member": Code(
        "An interpolation names a member that a variable does not have.",
        "The name is misspelled, or the value has no members.",
        "Correct the name.",
        _EITHER,
        is_strict=True,
    ),
    "traffic-method": Code(
        "An expression of a traffic policy calls an unknown method.",
        "The name is misspelled or belongs to another type (an error), or the platform added it later (a warning).",
        "Correct the name.",
        _EITHER,
    ),
    "traffic-phase": Code(
        "A phase, or an action in this phase, is not known to this version.",
        "The name is misspelled, the action belongs to another phase, or the platform added it later.",
        "Check the spelling, or move the action.",
        _WARNING,
    ),
    "traffic-renamed": Code(
        "A traffic policy uses a name of the platform's earlier documentation.",
        "The platform renamed a phase, action, setting or variable.",
        "Use the new name.",
        _WARNING,
        is_strict=True,
    ),
    "traffic-rules": Code(
        "A traffic policy holds one rule or action instead of a list of them, or an action in place of a rule.",
        "A `-` is missing, or the line `- actions:`. The platform refuses such a policy.",
        "Write the line that the message names.",
    ),
    "traffic-setting": Code(
        "A setting of an action is unknown.",
        "The name is misspelled (an error), or the platform added it later (a warning).",
        "Correct the name.",
        _EITHER,
    ),
    "traffic-types": Code(
        "An expression compares or passes values of types that do not fit together.",
        "The operator or function is not defined for these types; null, mixed or quoted numbers are a warning.",
        "Correct the expression.",
        _EITHER,
    ),
    "traffic-unchecked": Code(
        "An expression of a traffic policy could not be checked.",
        "It uses a part of the language that is not documented.",
        "Simplify the expression. The platform decides.",
        _WARNING,
    ),
    "traffic-value": Code(
        "A value of a setting is not known to this version.",
        "The value is misspelled, or the platform added it later.",
        "Check the spelling. A new name of the platform needs no change: this is a warning only.",
        _WARNING,
    ),
    "traffic-variable": Code(
        "An expression of a traffic policy names an unknown variable.",
        "The name is misspelled (an error), or the platform added it later (a warning).",
        "Correct the name.",
        _EITHER,
    ),
    "policy-expression-source": Code(
        "`{ref: …}`, `{from_env: …}` or `{from_file: …}` is used inside a traffic policy.",
        "Within a policy the platform gets the map as it is written.",
        "Write `${{ Kind/name.output }}` or `${{ var.name }}` in quotes, or take the whole policy from a file.",
        _WARNING,
        is_strict=True,
    ),
    "unreadable-interpolation": Code(
        "Text in a traffic policy looks like an interpolation but cannot be parsed.",
        "`${…}` holds something that is not an expression of the platform; it may be meant for another system.",
        "Correct the expression if the platform should evaluate it.",
        _WARNING,
    ),
}

_REFERENCES: Final = {
    "unknown-kind": Code(
        "A kind does not exist.",
        "The name is misspelled; kinds begin with a capital letter.",
        "Correct the name. `reconciler kinds` lists all kinds.",
    ),
    "invalid-address": Code(
        "A text is not the address of a resource.",
        "Addresses have the form `Kind/name`.",
        "Write the kind and the name of the resource, as in `TLSEdge/payments`.",
    ),
    "duplicate-address": Code(
        "Two manifests declare the same address.",
        "The kind and the name are the same.",
        "Rename one of them, and set `moved` if its object exists, or remove one of them.",
    ),
    "duplicate-object": Code(
        "Two manifests declare the same object on the platform.",
        "They name one id, or have equal values in fields that are unique on the platform, or a child is declared "
        "both in its parent's spec and in a manifest of its own.",
        "Remove one of them.",
    ),
    "duplicate-name": Code(
        "Two policies of a project, or two projects or waves of a fleet, have the same name.",
        "Each of them needs a name of its own.",
        "Rename one.",
    ),
    "circular-reference": Code(
        "Resources refer to each other in a cycle.",
        "None of them could be created first.",
        "Remove one of the references that the message lists.",
    ),
    "invalid-reference": Code(
        "A reference cannot be used here.",
        "It is not written as `Kind/name` or `Kind/name.output`, names a kind that the field does not take, or "
        "a resource without an object.",
        "Write a reference that the field takes, or the value itself.",
    ),
    "unknown-reference": Code(
        "A reference names a resource that is not declared.",
        "The address is misspelled, or the resource is declared in another project.",
        "Declare the resource, or use the id of the existing object.",
    ),
    "reference-to-absent": Code(
        "A reference names a resource that is declared absent, or left out by the environment.",
        "`ensure` is `absent` there, or the environment leaves the resource out.",
        "Remove the reference too.",
    ),
    "unknown-output": Code(
        "A resource does not have this output.",
        "The name is misspelled, belongs to another kind, or is a field whose value is written in the manifest.",
        "Use one of the outputs that the message lists.",
    ),
    "one-time-secret-reference": Code(
        "A reference reads a one-time secret.",
        "The platform shows the secret only in its response to the create, so that no later plan can know it.",
        "Use `deliver` on the resource that has the secret.",
    ),
    "invalid-id": Code(
        "An id does not belong to the kind.",
        "Ids of each kind have a prefix of their own.",
        "Correct the id.",
    ),
    "unusual-id": Code(
        "A text in a field for ids has no prefix of an id that the field takes.",
        "Ids of each kind have a prefix of their own.",
        "Correct the id, or refer to a declared resource with `{ref: Kind/name}`.",
        _WARNING,
    ),
    "terraform-expression": Code(
        "A value is written as Terraform writes it, such as `${var.name}` or `ngrok_https_edge.shop.id`.",
        "In a field for ids it is an error. In other texts it is sent as it is.",
        "Write `${{ var.name }}`, `${{ each.key }}` or `{ref: Kind/name}`, as the message says.",
        _EITHER,
    ),
    "invalid-move": Code(
        "An entry of `moved` is not a former address of this resource.",
        "It has another kind, is the current address, or belongs to another resource.",
        "Write the former address, or remove the line.",
    ),
    "undeclared-resource": Code(
        "An environment patches a resource that no manifest declares.",
        "The address is misspelled, or its manifest was removed.",
        "Declare the resource, or remove the patch.",
    ),
}

_SOURCES: Final = {
    "unknown-variable": Code(
        "A variable is not defined.",
        "The name is misspelled, or missing under `variables:`.",
        "Define it under `variables:` in `reconciler.yaml`.",
    ),
    "variable-without-value": Code(
        "A variable has no value.",
        "It has no default, and neither the environment nor `--var` sets it.",
        "Set it with `--var NAME=VALUE`, in `environments/NAME.yaml`, or with a default.",
    ),
    "unset-environment-variable": Code(
        "An environment variable that a manifest reads is not set, is empty, or is not text.",
        "The process was started without it.",
        "Export the variable in the shell or CI job that runs reconciler.",
    ),
    "reserved-environment-variable": Code(
        "A manifest reads an environment variable of this program.",
        "Variables that begin with `RECONCILER_` configure the program and may hold its keys.",
        "Use another variable; only `platform:` in `reconciler.yaml` may read these.",
    ),
    "invalid-expression": Code(
        "An expression, a `${{ … }}` or a map such as `{from_env: NAME}`, is not valid.",
        "It is not closed, has several sources or an operand of the wrong type, or is used where it is not evaluated.",
        "Correct the expression as the message says.",
    ),
    "invalid-for-each": Code(
        "A manifest with `for_each` cannot be expanded.",
        "`${{ each.… }}` names a value that an item does not have, or two instances would have the same name.",
        "Use `${{ each.key }}` in the name, and values that every item has.",
    ),
    "invalid-component": Code(
        "The file of a component cannot be used.",
        "Its first document does not declare `inputs`, another one is no resource, or two files have its name.",
        "Begin with `inputs:`, and write one resource in each other document ([components](components.md)).",
    ),
    "unknown-component": Code(
        "A component does not exist.",
        "No folder under `components:` has a file of this name.",
        "Correct the name, or add the folder of the component under `components:` in `reconciler.yaml`.",
    ),
    "component-loop": Code(
        "A component uses itself, directly or through others.",
        "The expansion would never end.",
        "Remove one of the uses that the message names.",
    ),
    "unknown-input": Code(
        "An input is not declared by the component.",
        "The name is misspelled, or missing under `inputs:` of the component.",
        "Correct the name, or declare the input.",
    ),
    "missing-input": Code(
        "A use of a component does not set an input that has no default.",
        "The input is new, or was forgotten.",
        "Set it under `with:`, or give it a default in the component.",
    ),
    "unknown-environment": Code(
        "An environment does not exist.",
        "There is no `environments/NAME.yaml`.",
        "Correct the name, or create the file.",
    ),
    "no-manifests": Code(
        "A path under `manifests:` contains no manifests.",
        "The folder has no `*.yaml` or `*.yml` files.",
        "Correct the path, or add manifests.",
        _WARNING,
    ),
    "missing-base-url": Code(
        "The URL of the platform is not set.",
        "Neither `platform.base_url` nor `RECONCILER_BASE_URL` is set.",
        "Set one of them.",
    ),
    "missing-api-key": Code(
        "No API key is set.",
        "Neither `platform.api_key` nor `RECONCILER_API_KEY` is set.",
        "Set one of them.",
    ),
    "invalid-api-key": Code(
        "The API key cannot be sent.",
        "It is empty, or contains a space, a line break or a non-ASCII character.",
        "Set it to the key without spaces, quotes or line breaks.",
    ),
}

_SECRETS: Final = {
    "literal-secret": Code(
        "A secret is written in plain text in a file of the project.",
        "Everyone who may read the repository may read the secret.",
        "Write `{from_env: NAME}` or `{from_file: PATH}`, and rotate the secret if it was committed.",
        _EITHER,
        is_strict=True,
    ),
    "secret-name-shown": Code(
        "A variable named like a secret is used in a field that plans and reports show.",
        "The field is not secret, so that its value is shown and stored on the platform.",
        "Put secrets into secret fields, or rename the variable if it holds none.",
        _WARNING,
        is_strict=True,
    ),
    "from-env-shown": Code(
        "A value from the environment is in a field that plans and reports show.",
        "`from_env` is meant for secrets, and this field is not secret.",
        "Use a variable, `${{ var.name }}`.",
        _WARNING,
    ),
    "secret-shown": Code(
        "A secret is used in a field that plans and the platform show.",
        "The value comes from a variable or file that is known to hold keys (docs/manifests.md), is also used in a "
        "secret field, or contains the value of a key in the environment.",
        "Use secrets only in secret fields.",
    ),
    "secret-in-template": Code(
        "A secret is combined with references.",
        "Outputs that are known only after an apply cannot be part of a secret.",
        "Read the whole secret from a file or an environment variable.",
    ),
    "one-time-secret-undelivered": Code(
        "A resource cannot be created because its one-time secret has no sink.",
        "The platform shows the secret only once, in the response to the create, so that it would be lost.",
        "Add `deliver` with a target, such as `{token: {to_file: secrets/token}}`.",
        _EITHER,
    ),
    "shared-delivery-target": Code(
        "Two deliveries write to the same target.",
        "The later delivery would overwrite the secret of the earlier one, in this environment or in another.",
        "Use a different target for each.",
        _EITHER,
    ),
    "shared-stack": Code(
        "Two projects of a fleet have the same stack, and a member gets both.",
        "The stack is the scope of ownership: each project would delete the objects of the other.",
        "Give each project a stack of its own in its `reconciler.yaml`.",
    ),
    "delivered-to-runner": Code(
        "A one-time secret is delivered to a file on a CI runner.",
        "`validate` runs with `CI=true`, and the files of most runners are deleted after the job.",
        "Deliver it with `to_github_secret`, `to_vault` or `to_command`.",
        _WARNING,
    ),
    "reserved-delivery-target": Code(
        "A delivery writes to a file of the project itself.",
        "Manifests, settings, the store and the folders of Git are never overwritten.",
        "Use another file, such as `secrets/NAME`.",
    ),
}

_PLATFORM: Final = {
    "retired-kind": Code(
        "The platform no longer accepts new resources of this kind.",
        "The platform retired the kind.",
        "Declare the kind that replaces it, as the message says.",
        _WARNING,
    ),
    "metadata-too-long": Code(
        "`metadata` leaves no room for the owner record.",
        "The owner record is stored in the object's metadata, whose size the platform limits.",
        "Shorten `metadata`.",
    ),
    "reserved-metadata": Code(
        "`metadata` contains the key of the owner record.",
        "The key is reserved for ownership.",
        "Use another key.",
    ),
}

_PLANS: Final = {
    "circular-calls": Code(
        "The calls of a plan wait for each other in a cycle.",
        "An object must be released, or deleted, before it is taken or created again, while others need it.",
        "Apply the change in two steps, as the message says.",
    ),
    "exclusive-key-taken": Code(
        "Another object holds a value that only one object may have.",
        "For example a host name or a port that the platform gives to one endpoint at a time.",
        "Release the value there, or adopt the object that holds it.",
    ),
    "last-part-in-use": Code(
        "A change would leave an object without any of its parts while another object needs one.",
        "The platform refuses to remove the last part as long as the object is in use.",
        "Keep or add a part until the change is applied, or detach the object first.",
    ),
    "separated-parts": Code(
        "A child that is to be kept would be deleted with its parent, or the other way round.",
        "Only one of the two is deleted or selected.",
        "Keep both or delete both, and select both.",
    ),
    "reference-unavailable": Code(
        "A reference names an object that does not exist and will not be created by this plan.",
        "The target is not selected, or will be deleted.",
        "Select the target too, or correct the reference.",
    ),
    "shared-owner-record": Code(
        "Several objects carry the owner record of one resource.",
        "An object was copied with its metadata, or several runs created it.",
        "Remove the owner record from the copies, or delete them.",
    ),
    "ambiguous-match": Code(
        "Several live objects could be the declared one.",
        "Several addresses of `moved`, or several objects with the same natural key, lead to an object.",
        "Name the object with `id:`, or keep one address in `moved`.",
    ),
    "conflicting-id": Code(
        "`id:` names another object than the one that carries the owner record.",
        "The resource already manages another object.",
        "Release that object first, with `ensure: absent` or `ensure: forgotten`.",
    ),
    "unknown-id": Code(
        "`id:` names an object that does not exist, and the resource cannot be created.",
        "The id is that of an object of another kind, or only modules of the object are declared.",
        "Correct the id, or remove the line to create a new object.",
    ),
    "refers-to-skipped": Code(
        "A change is skipped, since the resource refers to one that cannot be planned.",
        "What is referred to has a problem of its own, or an invalid manifest declares it. The rest is applied.",
        "Resolve the problem of the named resource.",
    ),
    "used-by-skipped": Code(
        "An object is not deleted or replaced, since a resource that cannot be planned uses it.",
        "The object of that resource is a part of it or refers to it, and would be deleted too or lose its reference.",
        "Resolve the problem of the named resource.",
    ),
    "manifests-incomplete": Code(
        "Nothing is deleted, moved or adopted that an invalid manifest may declare.",
        "A file or a declaration is invalid, so that nothing can be concluded from what the others do not declare.",
        "Correct the invalid manifests.",
    ),
    "owned-by-another-stack": Code(
        "A live object is managed by another stack.",
        "Its owner record names that stack.",
        "Remove it there with `ensure: forgotten`, then adopt it here.",
    ),
    "not-owned": Code(
        "A live object that no stack manages would be deleted or replaced.",
        "Objects without an owner record are updated in place at most, and never deleted or replaced.",
        "Adopt the object first, or delete it by hand.",
    ),
    "cannot-be-replaced": Code(
        "A resource must be replaced, and may not be.",
        "`lifecycle.replace` is `false`, or only modules of the object are managed.",
        "Undo the change, allow the replacement, or leave the resource out of `--replace`.",
    ),
    "ignored-field-needed": Code(
        "A change needs the value of a field in `lifecycle.ignore`.",
        "The value of an ignored field is not declared.",
        "Declare the field.",
    ),
    "still-in-use": Code(
        "An object that will be deleted is still referenced; the platform will refuse.",
        "The referrer is not managed by this stack, or its manifest still refers to the object.",
        "Remove the reference first.",
        _EITHER,
    ),
    "delete-includes-children": Code(
        "The platform deletes other objects together with this one.",
        "They are parts of the object.",
        "Check that they may be deleted, or keep the object.",
        _WARNING,
    ),
    "id-not-found": Code(
        "A manifest contains an id that no object of the account has.",
        "The object was deleted, or belongs to another account.",
        "Correct the id, or declare the object and refer to it with `{ref: Kind/name}`.",
        _WARNING,
    ),
    "host-not-reserved": Code(
        "An edge serves a host that no reserved domain or address covers.",
        "Neither the manifests nor the account have one with this name, nor a wildcard domain above it.",
        "Declare a ReservedDomain or ReservedAddress for it, or correct the host.",
        _WARNING,
    ),
    "kind-not-listed": Code(
        "Objects of a kind could not be listed completely.",
        "The platform returned an error before the last page. Objects that were not seen are never deleted.",
        "Run the command again. The message contains the response of the platform.",
        _EITHER,
    ),
    "kind-not-readable": Code(
        "The API key may not read some kinds.",
        "The key has a limited scope.",
        "Use a key that may read them. Nothing of these kinds is compared or deleted.",
        _WARNING,
    ),
    "additions-unknown": Code(
        "It is unknown whether children of an owned object were added.",
        "A list of objects could not be read to its end.",
        "Run `drift` again with a key that may list them.",
        _WARNING,
    ),
    "known-drift-expired": Code(
        "An entry of `drift.ignore` has expired and has no effect.",
        "The date in `until` has passed.",
        "Remove the entry, or set a later `until`.",
        _WARNING,
    ),
    "known-drift-unmatched": Code(
        "An entry of `drift.ignore`, or an `--ignore`, matches no difference.",
        "The drift is gone, or the pattern is misspelled.",
        "Remove the entry, or correct the pattern.",
        _WARNING,
    ),
    "delivered-file-gone": Code(
        "A file to which a one-time secret was delivered no longer exists on this machine.",
        "It was moved or deleted after the delivery.",
        "If the secret is lost, issue a new one with `apply --replace ADDRESS`.",
        (Severity.NOTE,),
    ),
    "credential-created-twice": Code(
        "Several credentials exist for one declaration.",
        "Runs with different stores each created it, and the token of each may be in use.",
        "Add `id:` with the credential to keep to the manifest, and apply: the others will be deleted.",
    ),
    "invalid-signing-key": Code(
        "A key that signs snapshots cannot be read.",
        "The value is not an Ed25519 private key in PEM.",
        "Create one with `openssl genpkey -algorithm ed25519`.",
    ),
    "unusable-snapshot": Code(
        "A snapshot file cannot be planned from.",
        "It is damaged, not signed by the project's key, too old, or of another stack, account or version.",
        "Take a new one with `reconciler snapshot`.",
    ),
    "planned-from-snapshot": Code(
        "The plan was made from a snapshot file, not from the account.",
        "`plan --snapshot` reads a file.",
        "Compare the age of the snapshot with the changes made since.",
        _WARNING,
    ),
    "manifest-finished": Code(
        "The work of a manifest with `ensure: absent` or `ensure: forgotten` is done.",
        "The object is deleted or no longer managed, and no other manifest refers to this one.",
        "Delete the manifest. Keep it while another environment has yet to apply it.",
        (Severity.NOTE,),
    ),
    "secrets-assumed": Code(
        "Secrets could not be read, and are assumed to be those that were last applied.",
        "With `--secrets unchanged`, a plan needs no secret that a manifest names by `from_env` or `from_file`.",
        "Nothing: an apply has the secrets, compares them, and sends none that differs.",
        (Severity.NOTE,),
    ),
    "secret-not-applied": Code(
        "A secret differs from the one that was last applied, which the plan assumed to be unchanged.",
        "The plan was made with `--secrets unchanged`, without the secret. The apply has it, and compares it.",
        "Name the secret by another variable or file in the manifest, or plan without `--secrets unchanged`.",
        _WARNING,
    ),
    "not-adoptable": Code(
        "A resource to adopt is not declared, or is declared absent.",
        "`adopt` connects a declaration with an existing object, so that a declaration is required.",
        "Declare it; `reconciler import --target Kind/name` writes a manifest for what exists.",
    ),
    "adoption-with-changes": Code(
        "`adopt` would change the object, or create one.",
        "`adopt` accepts only an object that is in sync with its declaration.",
        "Declare the live values, or adopt and update the object with `apply --adopt`.",
    ),
    "different-account": Code(
        "The base commit of `plan --base` is about another stack or account.",
        "`stack`, `account` or `platform.base_url` differs between the base commit and the planned files.",
        "Nothing is attributed in this review. Review the whole plan, since it may create everything again.",
    ),
    "invalid-approval": Code(
        "An entry of `approvals.yaml` cannot be read.",
        "It has no rule, an unknown one, or lacks `until` or `digest`.",
        "Copy the entry that `plan --fail-on approvals` prints.",
    ),
    "unused-approval": Code(
        "An entry of `approvals.yaml` approves no change of the plan.",
        "The entry expired or is misspelled, or the plan for the object is a different one by now. As a note: the plan "
        "has no such change, since it was applied already or withdrawn.",
        "Replace the entry after a review of the change. A note asks for nothing, until the entry has expired.",
        (Severity.WARNING, Severity.NOTE),
    ),
    "unusable-plan-file": Code(
        "A plan file cannot be applied.",
        "It is damaged, was changed, is not signed by the key, or is of another version.",
        "Create a new plan with `plan --out`.",
    ),
    "plan-file-rule": Code(
        "A plan file contains a call that no plan would contain.",
        "The file was edited, or was not made by `plan --out`.",
        "Create a new plan with `plan --out`.",
    ),
    "plan-delivery-differs": Code(
        "A plan file delivers a one-time secret elsewhere than the manifests say.",
        "The manifests changed after the plan was made, cannot be read, or the file was edited.",
        "Create a new plan with `plan --out`.",
    ),
    "policy": Code(
        "A policy of the project is violated, or cannot be evaluated.",
        "The policy's check is false for the resource, change or plan; its severity decides whether that is an error.",
        "Correct the resource, or write an exemption into the policy.",
        _EITHER,
    ),
    "access-test": Code(
        "An access test fails.",
        "A request gets through or is refused against the expectation, or it is unknown which.",
        "Correct the resources that the message names, or the test if the access is intended.",
        _EITHER,
    ),
    "access-test-not-run": Code(
        "What the manifests declare does not decide about the request of an access test.",
        "No declared resource serves the host, or one refers to an object that is not declared.",
        "Nothing: `plan` runs the test with the other objects of the account.",
        (Severity.NOTE,),
    ),
}

_FLEETS: Final = {
    "duplicate-member": Code(
        "Two members of a fleet have the same name.",
        "The name is in two rows of the members, or in two items of the list.",
        "Rename one of the two, or remove it.",
    ),
    "invalid-csv": Code(
        "A CSV file of members cannot be read.",
        "A row has another number of cells than the first line, quotes are not closed, or columns are separated with "
        "another character than a comma.",
        "Correct the line that the message names.",
    ),
    "invalid-json": Code(
        "A JSON file of members cannot be read.",
        "It is not a list of objects in valid JSON.",
        "Correct the file at the position that the message names.",
    ),
    "unknown-project": Code(
        "`after` names a project that the fleet does not have.",
        "The name is misspelled, or the project was removed.",
        "Name a project of the same file.",
    ),
    "circular-projects": Code(
        "Projects of a fleet wait for each other.",
        "The lists under `after` form a cycle, so that none of the projects could start.",
        "Remove one of the projects from `after`.",
    ),
    "duplicate-project": Code(
        "A member would get the same project twice.",
        "Two entries under `projects` have the same folder and environment, and both select the member.",
        "Remove one of the entries, or give them different environments or members.",
    ),
    "shared-api-key": Code(
        "Members of a fleet would use the same API key for the same project.",
        "The place of the key does not depend on the member, or two names lead to the same environment variable.",
        "Use `${{ member.name }}` under `api_key`, or rename one of the members.",
    ),
    "missing-label": Code(
        "A member lacks a label that `api_key` uses.",
        "`${{ member.labels.NAME }}` needs the label on every member.",
        "Add the label.",
    ),
    "unmatched-label": Code(
        "A selector names a label, a value or a name that no member has.",
        "It is misspelled, or the members have no such label yet.",
        "Correct the selector, or label members so.",
        _WARNING,
        is_strict=True,
    ),
    "selects-no-member": Code(
        "A project, a wave or a rule for workers selects no member.",
        "No member has all of the labels, or all of the members are in earlier waves.",
        "Correct the selector, or remove the entry.",
        _WARNING,
        is_strict=True,
    ),
}

AREAS: Final = {
    "Files": _FILES,
    "Fields and values": _VALUES,
    "Traffic policies": _TRAFFIC,
    "Addresses and references": _REFERENCES,
    "Settings, variables and environments": _SOURCES,
    "Secrets": _SECRETS,
    "The platform's rules": _PLATFORM,
    "Plans and drift": _PLANS,
    "Fleets": _FLEETS,
}

CODES: Final = {code: entry for area in AREAS.values() for code, entry in area.items()}


def is_strict(code: str) -> bool:
    """Whether `validate --strict` fails on a warning with this code."""
    found = CODES.get(code)
    return found is not None and found.is_strict
