"""The table of the mixed writers, as a Python program sees it: the model of PynamoDB, and a client of boto3.

Nothing is repeated on its own, so each answer gives the outcome of one request; unless DEFAULT_RETRIES is in the environment.
"""

import os

import boto3
from botocore.config import Config
from pynamodb.attributes import NumberAttribute, UnicodeAttribute, VersionAttribute
from pynamodb.models import Model
from pynamodb.settings import get_settings_value

ENDPOINT = os.environ.get("DYNAMODB_ENDPOINT")
DEFAULT_RETRIES = "DEFAULT_RETRIES" in os.environ
REGION = "us-east-1"
SHOP = "shop-1"
PATIENCE = 120  # seconds; the engine is on this machine and always answers
# The attributes known to a writer of whole items. It drops the rest.
KNOWN = ("shopId", "itemId", "stock", "note", "version")


def item_id(number):
    return f"item-{number:05}"


def model(table):
    """The model of one table. PynamoDB never looks at attributes that are not in it."""

    class Item(Model):
        class Meta:
            table_name = table
            host = ENDPOINT
            region = REGION
            max_retry_attempts = get_settings_value("max_retry_attempts") if DEFAULT_RETRIES else 0
            read_timeout_seconds = PATIENCE
            connect_timeout_seconds = PATIENCE
            billing_mode = "PAY_PER_REQUEST"

        shop_id = UnicodeAttribute(hash_key=True, attr_name="shopId")
        item_id = UnicodeAttribute(range_key=True, attr_name="itemId")
        stock = NumberAttribute(null=True)
        note = UnicodeAttribute(null=True)
        version = VersionAttribute()

    return Item


def client():
    retries = None if DEFAULT_RETRIES else {"total_max_attempts": 1}
    config = Config(retries=retries, read_timeout=PATIENCE, connect_timeout=PATIENCE)
    return boto3.client("dynamodb", endpoint_url=ENDPOINT, region_name=REGION, config=config)
