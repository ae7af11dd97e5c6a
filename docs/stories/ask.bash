# What every story needs: it asks the functions, keeps their answers, and stops with a sentence.
API=${API:-http://127.0.0.1:9000}

answers=$(mktemp -d)
trap 'rm -rf "$answers"' EXIT

fail() {
  echo "The story is not true: $1" >&2
  exit 1
}

# ask NAME METHOD PATH [curl options]: sends one request. It keeps the answer under NAME.
ask() {
  local name=$1 method=$2 path=$3
  shift 3
  curl -sS --max-time 600 -X "$method" "$API$path" -H 'content-type: application/json' "$@" \
    -D "$answers/$name.headers" -o "$answers/$name.body" -w '%{http_code}' >"$answers/$name.status" ||
    fail "$API did not answer. Start \`cargo dev\` first."
}
status() { cat "$answers/$1.status"; }
body() { cat "$answers/$1.body"; }
