"""Clients that send requests, and repeat each one that has a key until it is answered, as real clients do."""

import collections
import json
import random
import threading
import time

FUNCTIONS = {"devices": "device-state", "products": "inventory", "orders": "place-order", "leases": "lease", "parents": "ensure-child"}
PRODUCTS = [f"p-{number}" for number in range(6)]
DEVICES = [f"d-{number}" for number in range(4)]
LEASES = [f"l-{number}" for number in range(3)]
STOCK = 1_000_000


class Api:
    """The gateway in front of the functions."""

    def __init__(self, functions):
        self.functions, self.lock = functions, threading.Lock()
        self.seen = collections.Counter()

    def send(self, method, path, body=None, key=None, query=None):
        """Status, headers and body. A status of 502 if the function died on it."""
        event = {
            "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
            "queryStringParameters": query or {}, "isBase64Encoded": False, "body": None if body is None else json.dumps(body),
            "headers": {"content-type": "application/json"} | ({"idempotency-key": key} if key else {}),
            "requestContext": {"stage": "$default", "http": {"method": method, "path": path}},
        }
        if broken := self.functions.broken():
            raise Broken("; ".join(broken))
        answer = self.functions.invoke(FUNCTIONS[path.split("/")[1]], event)
        status = answer["statusCode"] if answer else 502
        with self.lock:
            self.seen["requests"] += 1
            self.seen[f"answered {status}"] += 1
        if answer is None:
            return 502, {}, ""
        return status, {name.lower(): value for name, value in answer["headers"].items()}, answer.get("body") or ""

    def until_answered(self, *request, **more):
        """Repeats the request until it has an answer. Returns that, and whether it was the first one."""
        for attempt in range(400):
            answer = self.send(*request, **more)
            demand(answer[0] != 500, f"{request} is answered 500: {answer[2]}")
            if answer[0] < 500:
                return (*answer, attempt == 0)
            time.sleep(0.1)
        raise Broken(f"{request} {more} has no answer after 400 repeats: {answer}")


class Broken(Exception):
    """A rule that does not hold."""


def demand(holds, what):
    if not holds:
        raise Broken(what)


class Client(threading.Thread):
    """One client. Everything that it chooses follows from the seed, though the races do not."""

    def __init__(self, seed, number, api, until):
        super().__init__(daemon=True)
        self.name, self.api, self.begun, self.until = f"client-{number}", api, time.monotonic(), until
        self.random, self.keys, self.broken = random.Random(f"{seed} client {number}"), 0, None
        # The facts known to it at the end: orders and cancellations by the order, keyed changes, adds without a key,
        # tokens, children.
        self.placed, self.cancelled = {}, {}
        self.restocked, self.keyed = collections.Counter(), collections.Counter()
        self.acknowledged, self.unknown = collections.Counter(), collections.Counter()
        self.acquired, self.children = [], collections.defaultdict(set)

    def run(self):
        acts = [self.order] * 5 + [self.cancel] * 2 + [self.restock, self.add, self.add, self.change, self.lease, self.child]
        try:
            while time.monotonic() < self.until:
                self.random.choice(acts)()
        except Exception as broken:  # Reported by the main thread.
            self.broken = broken

    def key(self):
        self.keys += 1
        return f"{self.name}-{self.keys}"

    def changed(self, *request, key):
        """A change with a key. Every fourth one is sent once more, and then the answer is the same."""
        status, headers, body, first = self.api.until_answered(*request, key=key)
        if first:
            demand("idempotency-replayed" not in headers, f"{key}: the first request is answered as a repeat")
        if status < 300 and self.random.random() < 0.25:
            again = self.api.until_answered(*request, key=key)
            demand((again[0], again[2]) == (status, body), f"{key}: {status} {body}, and then {again[0]} {again[2]}")
            demand(again[1].get("idempotency-replayed") == "true", f"{key}: a repeat is not marked: {again}")
        return status, body, first

    def order(self):
        lines = {product: self.random.randint(1, 3) for product in self.random.sample(PRODUCTS, self.random.randint(1, 3))}
        key = self.key()
        body = {"userId": self.name, "lines": [{"productId": name, "quantity": count} for name, count in lines.items()]}
        status, body, _ = self.changed("POST", "/orders", body, key=key)
        demand(status == 201, f"{key}: {status} {body}")
        self.placed[json.loads(body)["orderId"]] = (key, lines)

    def cancel(self):
        open_orders = [order for order in self.placed if order not in self.cancelled]
        if not open_orders:
            return
        order = self.random.choice(open_orders)
        status, _, body, _ = self.api.until_answered("POST", f"/orders/{order}/cancellation")
        demand(status == 200, f"the cancellation of {order}: {status} {body}")
        self.cancelled[order] = self.placed[order][1]

    def restock(self):
        product, by = self.random.choice(PRODUCTS), self.random.randint(1, 20)
        status, body, _ = self.changed("POST", f"/products/{product}/adjustments", {"by": by}, key=self.key())
        demand(status == 200, f"restock of {product}: {status} {body}")
        self.restocked[product] += by

    def add(self):
        """Without a key, and so not repeated: without an answer, a request may have been applied or not."""
        device = self.random.choice(DEVICES)
        status, _, body = self.api.send("POST", f"/devices/{device}/adjustments", {"attribute": "adds", "by": 1})
        demand(status in (200, 502, 503, 504), f"add to {device}: {status} {body}")
        self.acknowledged[device] += status == 200
        self.unknown[device] += status in (502, 504)

    def change(self):
        device = self.random.choice(DEVICES)
        body = {"attribute": "keyed", "by": 1}
        status, body, _ = self.changed("POST", f"/devices/{device}/adjustments", body, key=self.key())
        demand(status == 200, f"change of {device}: {status} {body}")
        self.keyed[device] += 1

    def lease(self):
        lease, begun = self.random.choice(LEASES), time.monotonic()
        body = {"holder": self.name, "ttlSeconds": 2}
        status, _, body, _ = self.api.until_answered("PUT", f"/leases/{lease}", body, key=self.key())
        if status != 201:
            return demand(status == 409, f"{lease}: {status} {body}")
        token = json.loads(body)["token"]
        self.acquired.append((lease, begun, time.monotonic(), token))
        status, _, body = self.api.send("PATCH", f"/leases/{lease}", {"token": token, "ttlSeconds": 2})
        demand(status in (200, 404, 409, 412, 502, 503, 504), f"renewal of {lease}: {status} {body}")
        if self.random.random() < 0.5:
            status, _, body, _ = self.api.until_answered("DELETE", f"/leases/{lease}", query={"token": str(token)})
            demand(status in (204, 409), f"release of {lease}: {status} {body}")

    def child(self):
        parent = f"parent-{int(time.monotonic() - self.begun) // 4}"
        body = {"parentUid": parent, "spec": {"for": parent}}
        status, _, body, _ = self.api.until_answered("PUT", f"/parents/{parent}/child", body)
        demand(status in (200, 201), f"child of {parent}: {status} {body}")
        self.children[parent].add(body)
