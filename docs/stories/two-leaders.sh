#!/usr/bin/env bash
# Two leaders, one child.
#
# A controller has one leader, who creates one child for each parent. Ann leads. Her process is paused for longer than
# her lease, so Bob acquires the lease. Now Ann wakes up and still believes that she leads.
#
# No clock protects the child. The token does. Each acquire gives out a higher token, and the create is one transaction
# with a look at the lease. Ann's create carries an old token and is refused. Bob's create makes the child. After that
# even Ann gets an answer: the child that is there.
#
# Start `cargo dev` in one terminal. Run this script in another. It needs bash, curl, grep and sed, and it fails with a
# sentence if the story is not true. API is the address of the functions.
set -euo pipefail
source "$(dirname "$0")/ask.bash"

# Each run uses names of its own, so the story can be told again on the same tables.
run=$(date +%s)-$RANDOM
lease=controller-$run
parent=cluster-$run

# lead NAME: NAME acquires the lease for one second.
lead() {
  ask "$1" PUT "/leases/$lease" -d '{"holder":"'"$1"'","ttlSeconds":1}'
  [ "$(status "$1")" = 201 ] || fail "$1 did not get the lease: $(status "$1") $(body "$1")"
}
token_of() { body "$1" | sed 's/.*"token":\([0-9]*\).*/\1/'; }

# ensure NAME TOKEN STATUS: a leader wants the parent to have its child, under this token. The answer has this status.
ensure() {
  ask child PUT "/parents/$parent/child" \
    -d '{"parentUid":"first","spec":{"size":3},"lease":{"key":"'"$lease"'","token":'"$2"'}}'
  echo "$1 wants the child, with token $2: $(status child) $(body child)"
  [ "$(status child)" = "$3" ] || fail "$1 was answered $(status child), not $3."
}
child_id() { body child | sed 's/.*"childId":"\([^"]*\)".*/\1/'; }

# Ann leads. Then she is paused: her lease ends, and so does the second by which clocks may differ.
lead ann
ann=$(token_of ann)
echo "Ann leads with token $ann, and falls asleep."
sleep 3

# Bob leads now. His token is higher.
lead bob
bob=$(token_of bob)
echo "Bob leads with token $bob."
[ "$ann" -lt "$bob" ] || fail 'the token did not rise.'

# Ann wakes up. She is fenced off, and there is no child yet.
ensure Ann "$ann" 409
grep -q '"code":"fenced"' <<<"$(body child)" || fail 'Ann was not told that she is fenced.'

# Bob makes the child.
ensure Bob "$bob" 201
made=$(child_id)

# Ann asks once more. The child is there now, and it is the answer.
ensure Ann "$ann" 200
[ "$(child_id)" = "$made" ] || fail "there are two children: $made and $(child_id)."

echo "Two believed that they lead, and the parent has one child: $made."
