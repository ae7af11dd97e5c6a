#!/usr/bin/env bash
# A delete that comes too late.
#
# Instance A has an address. It is shut down, and the message that deletes its mapping waits in a queue. Meanwhile
# instance B gets the same address. Now the message arrives. It must not delete the mapping of B.
#
# Fencepost compares creation timestamps. The message names A, B is newer, so there is nothing left to delete. That is a
# success: the message is done, and it does not come again. A late registration of A is refused for the same reason.
#
# Start `cargo dev` in one terminal. Run this script in another. It needs bash, curl, grep and sed, and it fails
# with a sentence if the story is not true. API is the address of the functions. INVOKE is the command that hands
# a batch of messages to the function behind the queue; the name of a file follows it. `cargo dev` prints that command.
set -euo pipefail
cd "$(dirname "$0")/../.."
source docs/stories/ask.bash
INVOKE=${INVOKE:-curl -sS -X POST $API/2015-03-31/functions/delete-mapping/invocations -T}

# Each run uses an address of its own, so the story can be told again on the same tables.
ip=10.$((RANDOM % 256)).$((RANDOM % 256)).$((RANDOM % 256))
a=i-0a1b2c3d4e5f60711
b=i-0b1b2c3d4e5f60712

# register NAME INSTANCE TIMESTAMP: says that the instance, created at this time, has the address.
register() {
  ask "$1" PUT "/mappings/$ip" \
    -d '{"cellId":"cell-1","instanceId":"'"$2"'","creationTimestamp":"'"$3"'"}'
}

# has_address INSTANCE: the address belongs to this instance.
has_address() {
  ask mapping GET "/mappings/$ip"
  [ "$(status mapping)" = 200 ] || fail "the address belongs to nobody: $(status mapping) $(body mapping)"
  grep -q '"instanceId":"'"$1"'"' <<<"$(body mapping)" || fail "the address does not belong to $1: $(body mapping)"
}

# A was created at 10:00 and has the address. B was created at 10:30 and has it now.
register first "$a" 2026-03-07T10:00:00.000Z
[ "$(status first)" = 201 ] || fail "A was not registered: $(status first) $(body first)"
register second "$b" 2026-03-07T10:30:00.000Z
[ "$(status second)" = 201 ] || fail "B was not registered: $(status second) $(body second)"
echo "$ip belonged to A and belongs to B now: $(body second)"

# The message that deletes A arrives. It is the one in events/, with the address of this run.
sed "s/192\.0\.2\.10/$ip/" events/delete-mapping-superseded.json >"$answers/message.json"
grep -q "$ip" "$answers/message.json" || fail 'the message in events/ does not name the address that is replaced here.'
# INVOKE is several words.
# shellcheck disable=SC2086
answer=$($INVOKE "$answers/message.json" | tr -d '[:space:]') || fail "the message was not handed over: $answer"
echo "The message that deletes A is answered with $answer"

# An empty list says that no message has to come again.
[ "$answer" = '{"batchItemFailures":[]}' ] || fail 'the delete that came too late was not taken for done.'
has_address "$b"
echo "The address still belongs to B: $(body mapping)"

# A slow network delivers the registration of A once more. It is refused.
register again "$a" 2026-03-07T10:00:00.000Z
echo "The registration of A comes once more: $(status again) $(body again)"
[ "$(status again)" = 409 ] || fail "the late registration was answered $(status again), not 409."
grep -q '"code":"superseded"' <<<"$(body again)" || fail 'the late registration was not called superseded.'
has_address "$b"

echo "The newest instance has the address. What came late changed nothing, and nothing has to be repaired."
