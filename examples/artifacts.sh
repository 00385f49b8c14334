#!/usr/bin/env bash
# Shows what artifacts are for: a result stays at the bridge, and each part of it can
# be fetched when it is needed. It uses the demo server ("make run" in another
# terminal) and curl.
#
#   examples/artifacts.sh [address of the bridge] [directory for the picture]
set -euo pipefail

bridge=${1:-http://127.0.0.1:8080}
dir=${2:-.}

say() { printf '\n# %s\n' "$*"; }
show() {
	local arg
	printf '$ curl'
	for arg in "$@"; do
		case $arg in
		*[\ \&\?]*) printf " '%s'" "$arg" ;;
		*) printf ' %s' "$arg" ;;
		esac
	done
	echo
}
get() {
	show "$bridge$1" "${@:2}"
	curl -sS --fail-with-body "$bridge$1" "${@:2}"
	echo
}
# ref calls a tool and prints the reference to what it returned, from the answer's headers.
ref() {
	curl -sS --fail-with-body -o /dev/null -D - -X POST "$bridge/tools/$1" -H 'Content-Type: application/json' -d "$2" |
		tr -d '\r' | sed -n 's/^Artifact-Ref: //Ip'
}

say "Call a tool. Of the answer we look only at what is new: the reference to the whole result."
show -i -X POST "$bridge/tools/demo/search_notes" -H 'Content-Type: application/json' -d '{"query": "bridge"}'
notes=$(ref demo/search_notes '{"query": "bridge"}')
echo "Artifact-Ref: $notes"

say "Its summary: long texts are cut, and what is large by itself is a reference."
get "/artifacts/$notes?view=summary"

say "(A caller that wants no more than that says so in the call: Prefer: return=minimal.)"

say "One field, by its JSON pointer; then the first 61 characters of its text, bare."
get "/artifacts/$notes?pointer=/notes/0/title"
get "/artifacts/$notes?pointer=/notes/0/text&limit=61" -H 'Accept: text/plain'

say "What is nested has a reference of its own: the parent's, and a number."
get "/artifacts/$notes.1?pointer=/title"

say "Search in all of the text: where is it, and what is around it?"
get "/artifacts/$notes?q=keystone"

say "A picture is stored as its server sent it, in base64; it can be had as the PNG that it is."
show -i -X POST "$bridge/tools/demo/picture" -H 'Content-Type: application/json' -d '{}'
picture=$(ref demo/picture '{}')
echo "Artifact-Ref: $picture"
show "$bridge/artifacts/$picture?pointer=/content/0&format=raw" -o "$dir/picture.png"
curl -sS --fail-with-body "$bridge/artifacts/$picture?pointer=/content/0&format=raw" -o "$dir/picture.png"
echo "picture.png: $(($(wc -c <"$dir/picture.png"))) bytes"

say "What you have, the newest first; and how to forget one before it expires."
get "/artifacts?limit=2"
show -X DELETE "$bridge/artifacts/$picture"
curl -sS --fail-with-body -X DELETE "$bridge/artifacts/$picture" -w '%{http_code}\n'
