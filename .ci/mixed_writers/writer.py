#!/usr/bin/env python3
"""A program that was there before Fencepost: it increments the stock of items, and knows only its own attributes.

    writer.py KIND TABLE SEED ITEMS COUNT

KIND is one of WRITERS. COUNT is a number; or `until-told`: without haste, until its input ends; or `each`: every item once, from
the first to the last of `FIRST-LAST` in ITEMS. Each change reads an item, and writes it on the version that was read; after a
conflict it begins again. In the end one line of JSON says how many increments of which item were acknowledged. Any other error
ends it.
"""

import json
import random
import sys
import threading
import time
from collections import Counter

from botocore.exceptions import ClientError
from pynamodb.exceptions import PutError, UpdateError

from items import KNOWN, SHOP, client, item_id, model

REFUSED = "ConditionalCheckFailedException"


def pynamodb_update(table):
    """`Model.update`: an UpdateItem of the changes. The version attribute adds the condition and 1."""
    item_of = model(table)

    def increment(key):
        item = item_of.get(SHOP, key, consistent_read=True)
        item.update(actions=[item_of.stock.set(int(item.stock) + 1)])

    return increment


def pynamodb_save(table):
    """`Model.save`: a PutItem of the attributes of the model, on the version."""
    item_of = model(table)

    def increment(key):
        item = item_of.get(SHOP, key, consistent_read=True)
        item.stock = int(item.stock) + 1
        item.save()

    return increment


def read(dynamodb, table, key):
    answer = dynamodb.get_item(TableName=table, Key={"shopId": {"S": SHOP}, "itemId": {"S": key}}, ConsistentRead=True)
    return answer["Item"]


def on_the_version_of(item):
    """The condition of a write on the item as it was read. An item without a version is not one with the version 0."""
    if "version" not in item:
        return {"ConditionExpression": "attribute_not_exists(version)"}, 0
    version = int(item["version"]["N"])
    return {"ConditionExpression": "version = :v", "ExpressionAttributeValues": {":v": {"N": str(version)}}}, version


def boto3_update(table):
    """By hand, the careful way: an UpdateItem that sets two attributes."""
    dynamodb = client()

    def increment(key):
        item = read(dynamodb, table, key)
        condition, version = on_the_version_of(item)
        values = condition.pop("ExpressionAttributeValues", {})
        values |= {":next": {"N": str(version + 1)}, ":stock": {"N": str(int(item["stock"]["N"]) + 1)}}
        dynamodb.update_item(
            TableName=table, Key={"shopId": item["shopId"], "itemId": item["itemId"]},
            UpdateExpression="SET version = :next, stock = :stock", ExpressionAttributeValues=values, **condition)

    return increment


def boto3_put(table):
    """By hand, the plain way: a PutItem of the attributes that this program knows."""
    dynamodb = client()

    def increment(key):
        item = {name: value for name, value in read(dynamodb, table, key).items() if name in KNOWN}
        condition, version = on_the_version_of(item)
        item["version"] = {"N": str(version + 1)}
        item["stock"] = {"N": str(int(item["stock"]["N"]) + 1)}
        dynamodb.put_item(TableName=table, Item=item, **condition)

    return increment


WRITERS = {
    "pynamodb-update": pynamodb_update, "pynamodb-save": pynamodb_save, "boto3-update": boto3_update, "boto3-put": boto3_put}


def is_conflict(error):
    if isinstance(error, ClientError):
        return error.response["Error"]["Code"] == REFUSED
    return error.cause_response_code == REFUSED


def change(increment, key, chance):
    """Increments once. The pause grows with each lost race, so that one writer wins."""
    for lost in range(1000):
        try:
            return increment(key)
        except (ClientError, PutError, UpdateError) as error:
            if not is_conflict(error):
                raise
        time.sleep(chance.uniform(0, min(0.004 * 2**lost, 0.2)))
    raise SystemExit(f"{key}: 1,000 races lost, which is no race any more")


def end_of_input():
    """An event that is set when nothing more is on the input."""
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    return ended


def numbers(chance, items, count):
    """The numbers of the items to increment, one after the other."""
    if count == "each":
        first, last = map(int, items.split("-"))
        yield from range(first, last + 1)
    elif count == "until-told":
        ended = end_of_input()
        while not ended.wait(0.01):
            yield chance.randrange(int(items))
    else:
        for _ in range(int(count)):
            yield chance.randrange(int(items))


def main():
    kind, table, seed, items, count = sys.argv[1:]
    increment, chance, acknowledged = WRITERS[kind](table), random.Random(f"{seed} {kind}"), Counter()
    for number in numbers(chance, items, count):
        change(increment, item_id(number), chance)
        acknowledged[item_id(number)] += 1
    print(json.dumps({"acknowledged": acknowledged}))


if __name__ == "__main__":
    sys.exit(main())
