"""A proxy between the functions and their DynamoDB, with the losses of a network.

It counts the commits that the engine has acknowledged, row by row, and those with an unseen answer. A request is
handed to the engine once. Nothing is invented: a client that gets no answer sends again by itself.
"""

import collections
import contextlib
import http.client
import http.server
import json
import random
import threading
import time

# Of 1,000 requests each. The rest passes.
FAULTS = {"reset before": 12, "500 before": 8, "throttled": 12, "lost answer": 30, "500 after": 8, "delayed": 40, "held": 4}
THROTTLED = b'{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"soak"}'
BROKEN = b'{"__type":"com.amazon.coral.service#InternalServerError","message":"soak"}'
JSON = "application/x-amz-json-1.0"


class Commits:
    """The number of writes of each row: the acknowledged ones, and those perhaps applied."""

    def __init__(self):
        self.lock = threading.Lock()
        self.acknowledged = collections.Counter()
        self.unanswered = collections.Counter()
        self.tokens = set()

    def count(self, operation, request, answered):
        token = request.get("ClientRequestToken")
        with self.lock:
            if answered and token:
                # The engine answers a token that it knows without applying it again.
                if token in self.tokens:
                    return
                self.tokens.add(token)
            for row in rows(operation, request):
                (self.acknowledged if answered else self.unanswered)[row] += 1


def rows(operation, request):
    if operation in ("PutItem", "UpdateItem", "DeleteItem"):
        yield row_of(request)
    for step in request.get("TransactItems", []) if operation == "TransactWriteItems" else []:
        for kind in ("Put", "Update", "Delete"):
            if kind in step:
                yield row_of(step[kind])


def row_of(write):
    key = write.get("Key") or {name: value for name, value in write["Item"].items() if name in KEYS}
    return write["TableName"], "/".join(str(value) for part in sorted(key) for value in key[part].values())


KEYS = {"deviceId", "productId", "orderId", "recordId", "leaseKey", "childId"}


class Proxy:
    def __init__(self, seed, engine_port):
        self.random, self.lock = random.Random(f"{seed} proxy"), threading.Lock()
        self.faulty, self.under_way = True, 0
        self.seen, self.commits = collections.Counter(), Commits()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 60

            def setup(self):
                super().setup()
                self.engine = http.client.HTTPConnection("127.0.0.1", engine_port, timeout=30)

            def finish(self):
                self.engine.close()
                super().finish()

            def handle(self):
                try:
                    super().handle()
                except OSError:
                    proxy.seen["client gone"] += 1

            def do_POST(self):
                with proxy.under_work():
                    proxy.handle(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @contextlib.contextmanager
    def under_work(self):
        with self.lock:
            self.under_way += 1
        try:
            yield
        finally:
            with self.lock:
                self.under_way -= 1

    def draw(self):
        with self.lock:
            place, delay = self.random.randrange(1000), self.random.random()
        for fault, share in FAULTS.items() if self.faulty else ():
            if place < share:
                self.seen[fault] += 1
                return fault, delay
            place -= share
        return None, delay

    def handle(self, client):
        body = client.rfile.read(int(client.headers.get("content-length", 0)))
        operation = client.headers.get("x-amz-target", "").rpartition(".")[2]
        fault, delay = self.draw()
        self.seen["requests"] += 1
        if fault == "reset before":
            return self.drop(client)
        if fault in ("500 before", "throttled"):
            return self.answer(client, *((500, BROKEN) if fault == "500 before" else (400, THROTTLED)))
        if fault == "held":  # Often until the client has given up: the request arrives late.
            time.sleep(0.5 + 3 * delay)
        got = self.ask(client, operation, body)
        if fault == "delayed":
            time.sleep(0.02 + 0.6 * delay)
        if got is None or fault == "lost answer":
            return self.drop(client)
        return self.answer(client, *((500, BROKEN) if fault == "500 after" else got))

    def ask(self, client, operation, body):
        """The answer of the engine. None if it was killed meanwhile or is not up."""
        request = json.loads(body or b"{}")
        headers = {name: value for name, value in client.headers.items() if name.lower() not in ("host", "connection", "content-length")}
        sent = False
        try:
            if client.engine.sock is None:
                client.engine.connect()
            sent = True
            client.engine.request("POST", "/", body, headers)
            answer = client.engine.getresponse()
            status, text = answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            client.engine.close()
            self.seen["engine gone"] += 1
            if sent:
                self.commits.count(operation, request, False)
            return None
        if status == 200:
            self.commits.count(operation, request, True)
        return status, text

    def answer(self, client, status, body):
        try:
            client.send_response(status)
            client.send_header("Content-Type", JSON)
            client.send_header("Content-Length", str(len(body)))
            client.end_headers()
            client.wfile.write(body)
        except OSError:
            self.seen["client gone"] += 1
            client.close_connection = True

    @staticmethod
    def drop(client):
        client.close_connection = True
