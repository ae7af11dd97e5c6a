#!/usr/bin/env bash
# Buying the last item.
#
# One item is left in stock. Ann and Bob order it in the same moment. One of them gets it. The other one learns that it
# is sold out. The stock is 0 afterwards, and there is one order. Chance decides who wins.
#
# Both orders may read a stock of 1. DynamoDB then refuses one of the two transactions, and the function decides again.
#
# Then the winner sends the order again, as a client does when it has lost the answer. It gets the same order back, and
# the stock stays 0.
#
# Start `cargo dev` in one terminal. Run this script in another. It needs bash, curl, grep and sed, and it fails with a
# sentence if the story is not true. API is the address of the functions.
set -euo pipefail
source "$(dirname "$0")/ask.bash"

# Each run uses names of its own, so the story can be told again on the same tables.
run=$(date +%s)-$RANDOM
product=last-$run

# order NAME: NAME orders one of the product. The key makes it safe to send the order again.
order() {
  ask "$1" POST /orders -H "idempotency-key: for-$1-$run" \
    -d '{"userId":"'"$1"'","lines":[{"productId":"'"$product"'","quantity":1}]}'
}

# A shop has one item left.
ask product PUT "/products/$product" -d '{"stock":1}'
[ "$(status product)" = 201 ] || fail "the product was not created: $(status product) $(body product)"
echo "In stock: $(body product)"

# The first request to a function starts it, and that takes a moment. This one finds no order. Now both start together.
ask nothing GET "/orders/none-$run"

# Ann and Bob order it at once.
order ann & ann=$!
order bob & bob=$!
wait "$ann"
wait "$bob"
echo "Ann: $(status ann) $(body ann)"
echo "Bob: $(status bob) $(body bob)"

# One of them has it, and the other one does not.
case "$(status ann) $(status bob)" in
  '201 409') winner=ann loser=bob ;;
  '409 201') winner=bob loser=ann ;;
  *) fail "the two orders were answered $(status ann) and $(status bob), not 201 and 409." ;;
esac
grep -q '"code":"insufficient_stock"' <<<"$(body "$loser")" || fail 'the loser was not told insufficient_stock.'
grep -q '"available":0' <<<"$(body "$loser")" || fail 'the loser was not told that 0 are available.'

# in_stock STOCK: the shop has this many left.
in_stock() {
  ask stock GET "/products/$product"
  echo "In stock: $(body stock)"
  grep -qE '"stock":'"$1"'[,}]' <<<"$(body stock)" || fail "the stock is not $1."
}
in_stock 0

# The winner has lost the answer and sends the order again. It is the same order, and nothing more is taken.
id=$(body "$winner" | sed 's/.*"orderId":"\([^"]*\)".*/\1/')
first=$(body "$winner")
order "$winner"
echo "$winner again: $(status "$winner") $(body "$winner")"
[ "$(status "$winner")" = 201 ] || fail "the repeated order was answered $(status "$winner"), not 201."
[ "$(body "$winner")" = "$first" ] || fail "the repeated order is not the order $id again, byte for byte."
grep -qi '^idempotency-replayed: true' "$answers/$winner.headers" || fail 'the repeated answer is not marked as a replay.'
in_stock 0

echo "One item was left, one of two got it, and the order $id counts once."
