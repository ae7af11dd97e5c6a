"""More ways for a Python program to increment the first item of a table, for `.ci/rivals`."""

import time
import uuid
from random import uniform

from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent_function
from botocore.exceptions import BotoCoreError, ClientError

from items import SHOP, client, item_id


def adding(table):
    """An update that adds one without a condition."""
    return {"TableName": table, "Key": {"shopId": {"S": SHOP}, "itemId": {"S": item_id(0)}},
            "UpdateExpression": "ADD stock :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}


def add(table):
    dynamodb = client()
    return lambda _: dynamodb.update_item(**adding(table))


def marker(table):
    """Repeats with an id of its own, until the marker under that id is there."""
    dynamodb = client()

    def increment(_):
        item = {"shopId": {"S": "markers"}, "itemId": {"S": str(uuid.uuid4())}}
        put = {"TableName": table, "Item": item, "ConditionExpression": "attribute_not_exists(itemId)"}
        while True:
            try:
                return dynamodb.transact_write_items(TransactItems=[{"Put": put}, {"Update": adding(table)}])
            except dynamodb.exceptions.TransactionCanceledException as error:
                if error.response["CancellationReasons"][0]["Code"] == "ConditionalCheckFailed":
                    return None
            except (BotoCoreError, ClientError):
                pass  # it repeats after any
            time.sleep(uniform(0, 0.1))

    return increment


def powertools(table):
    """The caller repeats with the same key until it gets a result. An execution may last a second."""
    dynamodb, config, effect = client(), IdempotencyConfig(), add(table)
    config.register_lambda_context(type("Context", (), {"get_remaining_time_in_millis": lambda _: 1000})())
    key = {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}
    key["AttributeDefinitions"] = [{"AttributeName": "id", "AttributeType": "S"}]
    dynamodb.create_table(TableName=f"{table}-calls", BillingMode="PAY_PER_REQUEST", **key)
    layer = DynamoDBPersistenceLayer(table_name=f"{table}-calls", boto3_client=dynamodb)

    @idempotent_function(data_keyword_argument="call", persistence_store=layer, config=config)
    def guarded(call):
        effect(call)
        return "done"

    def increment(_):
        call = str(uuid.uuid4())
        while True:
            try:
                return guarded(call=call)
            except Exception:  # its caller repeats after any
                time.sleep(0.3)

    return increment
