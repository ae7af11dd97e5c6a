"""Plays the files of events/ in an order in which they make sense, and judges the answers."""

import json
import re

from processes import ROOT

# A file of events/ with its answer: the status, or the places of the messages of a batch that come again. `EVENT:METHOD`
# is a GET or a DELETE of the path of the event. The rest of the line replaces parts of the event. `{etag}` stands for the
# last ETag, `{id}` for the end of the last Location,
# `{token}` for the last token. The events in the files name a version or a token that is not current. An event without
# a line is sent at the end. It must succeed.
STEPS = r"""
device-state-get 404
device-state-create 201
device-state-create 409
device-state-get 200
device-state-patch-state 200
device-state-adjust 200
device-state-set-status 200
device-state-set-config 200
device-state-get:DELETE 412 {"headers": {"if-match": "\"9.AAAAAAAAAAA\""}}
device-state-get:DELETE 204 {"headers": {"if-match": "{etag}"}}
device-state-get 404
inventory-create:GET 404
inventory-create 201
inventory-create:GET 200
inventory-adjust 200
place-order-list 200
place-order-place 201
place-order-get 200 {"pathParameters": {"orderId": "{id}"}}
place-order-place 201
place-order-cancel 200 {"pathParameters": {"orderId": "{id}"}}
place-order-get 404
place-order-cancel 404
host-mapping-register:GET 404
host-mapping-register 201
host-mapping-register 200
host-mapping-register:GET 200
host-mapping-delete 204
host-mapping-register:GET 404
host-mapping-register 409
delete-mapping-superseded []
delete-mapping-batch [2]
lease-acquire:GET 404
lease-renew 404
lease-acquire 201 {"body": "{\"holder\":\"worker-1\",\"ttlSeconds\":900}"}
lease-acquire 409
lease-acquire:GET 200
lease-renew 409
lease-renew 200 {"body": "{\"token\":{token},\"ttlSeconds\":900}"}
lease-release 409
ensure-child-get 404
ensure-child-ensure 409
ensure-child-ensure 201 {"body": "{\"parentUid\":\"0b6f7a52-5d0e-4c8e-8f8e-3f4f1f3c2a10\",\"spec\":{},\"lease\":{\"key\":\"nightly-report\",\"token\":{token}}}"}
ensure-child-get 200
lease-release 204 {"queryStringParameters": {"token": "{token}"}, "rawQueryString": "token={token}"}
lease-acquire:GET 404
"""


def filled(value, known):
    """The value with the known values in place of their names in braces."""
    if isinstance(value, dict):
        return {name: filled(part, known) for name, part in value.items()}
    for name, text in known.items() if isinstance(value, str) else ():
        value = value.replace(f"{{{name}}}", text)
    return value


def changed(event, changes):
    """The event with these members in place of its own; of its headers and path parameters only those that are named."""
    event = event | changes | {name: event[name] | changes[name] for name in ("headers", "pathParameters") if name in changes}
    if "pathParameters" in changes:
        path = event["routeKey"].partition(" ")[2].format(**event["pathParameters"])
        context = event["requestContext"]
        event |= {"rawPath": path, "requestContext": context | {"http": context["http"] | {"path": path}}}
    return event


def as_expected(answer, event, expected):
    if expected is None:
        return "error" not in answer and 200 <= answer.get("statusCode", 200) < 300 and not answer.get("batchItemFailures")
    if isinstance(expected, list):
        return answer == {"batchItemFailures": [{"itemIdentifier": event["Records"][place]["messageId"]} for place in expected]}
    problem = answer.get("headers", {}).get("content-type") == "application/problem+json"
    return answer.get("statusCode") == expected and problem == (expected >= 400)


def steps():
    """Each event's name, the changes in it, and the expected answer; None is success."""
    lines = [re.fullmatch(r"(\S+) (\d+|\[.*?\]) ?(.*)", line).groups() for line in STEPS.split("\n") if line]
    yield from ((name, json.loads(changes or "{}"), json.loads(expected)) for name, expected, changes in lines)
    others = {path.stem for path in (ROOT / "events").glob("*.json")} - {name for name, *_ in lines}
    order = ("PUT", "POST", "PATCH", "GET", "DELETE")  # creates come first
    yield from ((name, {}, None) for name in
                sorted(others, key=lambda name: (order.index(read(name).get("routeKey", "PUT ").split()[0]), name)))


def read(name):
    name, _, method = name.partition(":")
    event = json.loads((ROOT / "events" / f"{name}.json").read_text())
    if method:
        route, context = f"{method} {event['routeKey'].split()[1]}", event["requestContext"]
        context = context | {"routeKey": route, "http": context["http"] | {"method": method}}
        event = event | {"routeKey": route, "requestContext": context, "body": None}
    return event


def logical_id(function):
    """template.yaml calls the function `device-state` DeviceStateFunction."""
    return "".join(word.capitalize() for word in function.split("-")) + "Function"


def play(invoke):
    """Plays the steps by `invoke(logical id, event)`, and ends with a sentence if one does not go as expected."""
    failed, played, known = 0, 0, {"etag": "", "id": "", "token": ""}
    functions = sorted((path.stem for path in (ROOT / "functions" / "src" / "bin").glob("*.rs")), key=len, reverse=True)
    for name, changes, expected in steps():
        event = changed(read(name), filled(changes, known))
        function = next(function for function in functions if name.startswith(f"{function}-"))
        answer = invoke(logical_id(function), event)
        headers = {header.lower(): value for header, value in answer.get("headers", {}).items()}
        answer = answer | ({"headers": headers} if headers else {})
        known["etag"] = headers.get("etag", known["etag"])
        if "etag" in headers and (token := re.search(r'"token": ?(\d+)', answer.get("body") or "")):
            known["token"] = token[1]
        known["id"] = headers.get("location", known["id"]).rpartition("/")[2]
        right = as_expected(answer, event, expected)
        print(f"{'ok  ' if right else 'FAIL'} {name} {answer.get('statusCode', '')} {' '.join(changes)}".rstrip(), flush=True)
        if not right:
            print(f"     expected {expected}: {json.dumps(answer)}")
        failed, played = failed + (not right), played + 1
    if failed:
        raise SystemExit(f"{failed} of {played} steps failed")
    print(f"{played} steps: all as expected")
