"""Places an order with the client that openapi-python-client made of docs/openapi.yaml."""

import sys
import uuid

from client import Client
from client.api.orders import get_order, place_order
from client.api.products import create_product, get_product
from client.models import CreateProductBody, PlaceOrderBody, PlaceOrderResponse409

run = uuid.uuid4().hex
client = Client(base_url=sys.argv[1], timeout=600)

product = create_product.sync(product_id=f"mug-{run}", client=client, body=CreateProductBody(stock=5, low_stock_at=2))
assert product.stock == 5 and product.status == "in_stock", product


def order(quantity, key):
    """Orders so many mugs; the answer with its status and its headers."""
    body = PlaceOrderBody.from_dict({"userId": "user-1", "lines": [{"productId": f"mug-{run}", "quantity": quantity}]})
    return place_order.sync_detailed(client=client, body=body, idempotency_key=key)


placed, again = order(3, run), order(3, run)
assert placed.status_code == again.status_code == 201, (placed, again)
assert placed.parsed == again.parsed and again.headers["Idempotency-Replayed"] == "true", (placed, again)
assert get_order.sync(placed.parsed.order_id, client=client) == placed.parsed
refused = order(3, f"{run}-2").parsed
assert isinstance(refused, PlaceOrderResponse409), refused
assert refused.to_dict()["lines"] == [{"productId": f"mug-{run}", "requested": 3, "available": 2}], refused
assert get_product.sync(f"mug-{run}", client=client).stock == 2
print(f"the generated client placed the order {placed.parsed.order_id} once")
