"""The facts that must hold at the end, after all losses and kills on the way."""

import collections
import json

from clients import DEVICES, PRODUCTS, STOCK, demand


def listed(api, user):
    """All orders of a user, with their lines."""
    orders, cursor = [], None
    while True:
        query = {"userId": user, "limit": "100"} | ({"cursor": cursor} if cursor else {})
        status, _, body, _ = api.until_answered("GET", "/orders", query=query)
        demand(status == 200, f"the orders of {user}: {status} {body}")
        page = json.loads(body)
        orders += page["orders"]
        cursor = page.get("cursor")
        if cursor is None:
            return orders


def shown(api, path, **query):
    status, _, body, _ = api.until_answered("GET", path, query=query)
    demand(status == 200, f"{path}: {status} {body}")
    return json.loads(body)


def orders(api, clients):
    """One order for each key, as it was answered. Returns how many of each product are ordered, less the cancelled ones."""
    taken, total = collections.Counter(), 0
    for client in clients:
        there = {order["orderId"]: order for order in listed(api, client.name)}
        demand(set(there) == set(client.placed),
               f"{client.name} placed {len(client.placed)} orders, and {len(there)} are there: {set(there) ^ set(client.placed)}")
        keys = [key for key, _ in client.placed.values()]
        demand(len(keys) == len(set(keys)), f"{client.name}: two orders for one key")
        for order, (key, lines) in client.placed.items():
            found = {line["productId"]: line["quantity"] for line in there[order]["lines"]}
            demand(found == lines, f"{key}: {lines} were ordered, and {found} are there")
            cancelled = there[order]["status"] == "CANCELLED"
            demand(cancelled == (order in client.cancelled), f"{order} is {there[order]['status']}")
            if not cancelled:
                taken.update(lines)
        total += len(there)
    return taken, total


def stock(api, clients, taken):
    for product in PRODUCTS:
        restocked = sum(client.restocked[product] for client in clients)
        found = shown(api, f"/products/{product}")["stock"]
        expected = STOCK + restocked - taken[product]
        demand(found == expected, f"{product} has a stock of {found}, and it must be {expected}")


def devices(api, clients):
    for device in DEVICES:
        state = shown(api, f"/devices/{device}")["state"]
        total = lambda counters: sum(counter[device] for counter in counters)
        keyed = total(client.keyed for client in clients)
        demand(state["keyed"] == keyed, f"{device}: {keyed} changes with a key, and {state['keyed']} are there")
        known, unknown = total(client.acknowledged for client in clients), total(client.unknown for client in clients)
        demand(known <= state["adds"] <= known + unknown, f"{device}: {known} adds and {unknown} unknown, but {state['adds']}")


def versions(api, commits):
    """The version of each row is the number of its commits. The proxy has seen them, or has seen that it might have."""
    paths = [("Products", f"/products/{name}", name) for name in PRODUCTS] + [("Devices", f"/devices/{name}", name) for name in DEVICES]
    unseen = 0
    for kind, path, name in paths:
        version = shown(api, path)["version"]
        table = [table for table, row in commits.acknowledged if row == name and kind.lower() in table.lower()]
        demand(len(table) == 1, f"{name} is in the tables {table}")
        seen, perhaps = commits.acknowledged[table[0], name], commits.unanswered[table[0], name]
        demand(seen <= version <= seen + perhaps, f"{name} is at version {version}, with {seen} commits and perhaps {perhaps} more")
        unseen += version - seen
    return unseen


def leases(clients):
    """A lease that was asked for after another one was answered has a higher token."""
    acquired = [one for client in clients for one in client.acquired]
    highest, pending = collections.Counter(), collections.defaultdict(list)
    for lease, begun, ended, token in sorted(acquired, key=lambda one: one[1]):
        for done, other in [one for one in pending[lease] if one[0] < begun]:
            highest[lease] = max(highest[lease], other)
        pending[lease] = [one for one in pending[lease] if one[0] >= begun] + [(ended, token)]
        demand(token > highest[lease], f"{lease}: token {token} after {highest[lease]}")
    tokens = [(lease, token) for lease, _, _, token in acquired]
    demand(len(tokens) == len(set(tokens)), "a token was given twice")
    return len(tokens)


def children(clients):
    bodies = collections.defaultdict(set)
    for client in clients:
        for parent, seen in client.children.items():
            bodies[parent] |= seen
    for parent, seen in bodies.items():
        demand(len(seen) == 1, f"{parent} has {len(seen)} children: {seen}")
    return len(bodies)
