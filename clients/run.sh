#!/usr/bin/env bash
# Runs real consumers of the bridge's OpenAPI documents against a live bridge:
# run.sh [consumer...], all of them by default. It builds the bridge, starts it
# with real MCP servers on a free port, and once more with one server that has
# schemas of every shape; fetches the documents to out/docs, and gives every
# consumer these variables:
#   BRIDGE  the address of the bridge, like http://127.0.0.1:1234
#   SHAPES  the address of the one with shapes.mjs
#   DOCS    the folder of the documents: all.json and one per handle of the first,
#           one per handle of the second, and in 3.0/ the same as OpenAPI 3.0; and
#           bridge.json with the bridge's own operations
#   FILES   the folder that the server "files" may read and write
# What a consumer prints goes to out/log/<consumer>, and is shown if it fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly here=$PWD
readonly servers=$here/../testdata/npm/node_modules/.bin
readonly handles=(demo everything files memory)
# The shapes, all of them, and for each consumer that cannot take one the others.
readonly shapes=(shapes shapes_python shapes_java shapes_golang)
# The renderings to fetch; 3.0 also switches on the consumers that need it.
readonly versions=(3.1 3.0)

consumers=("$@")
if ((${#consumers[@]} == 0)); then
	# The longest first.
	consumers=(java typescript validate python golang schemathesis)
fi

die() {
	printf 'clients: %s\n' "$*" >&2
	exit 1
}

# Everything is written anew, so that no consumer passes on what an earlier run left.
readonly out=$here/out
rm -rf "$out"
mkdir -p "$out"/{log,docs,files,memory}
printf 'first\nsecond\n' >"$out/files/hello.txt"
export DOCS=$out/docs FILES=$out/files
# For the tools that report to their makers how they are used.
export DO_NOT_TRACK=1

pids=()
declare -A running=() # :: process group -> the consumer that runs in it
stop() {
	local pid
	for pid in "${!running[@]}"; do
		kill -TERM -- "-$pid" 2>/dev/null || true
	done
	for pid in "${pids[@]}"; do
		kill -INT "$pid" 2>/dev/null || true
	done
	wait "${pids[@]}" || true
}
trap stop EXIT
trap 'exit 130' INT TERM

# start runs a bridge with out/<name>.json, waits until its servers have
# answered, and sets address.
start() {
	local -r log=$out/log/$1
	local deadline=$((SECONDS + 120)) listen=
	"$out/bridge" serve --config "$out/$1.json" >"$log" 2>&1 &
	pids+=($!)
	until [[ -n $listen ]] && curl -sf -o "$out/ready" "http://$listen/readyz"; do
		kill -0 "${pids[-1]}" 2>/dev/null || { cat "$log" >&2; die "the bridge $1 ended"; }
		((SECONDS < deadline)) || { cat "$log" >&2; die "the bridge $1 is not ready"; }
		sleep 0.2
		listen=$(sed -nE 's/.*"msg":"serving","addr":"([^"]+)".*/\1/p' "$log")
	done
	address=http://$listen
}

start_all() {
	if [[ -n ${BRIDGE_BINARY-} ]]; then
		cp "$BRIDGE_BINARY" "$out/bridge"
	else
		(cd .. && CGO_ENABLED=0 go build -o "$out/bridge" ./cmd/bridge)
	fi
	cat >"$out/real.json" <<-JSON
		{
		  "mcpServers": {
		    "demo": {"command": "$out/bridge", "args": ["demo"]},
		    "everything": {"command": "$servers/mcp-server-everything"},
		    "files": {"command": "$servers/mcp-server-filesystem", "args": ["$FILES"]},
		    "memory": {"command": "$servers/mcp-server-memory", "env": {"MEMORY_FILE_PATH": "$out/memory/graph.json"}}
		  },
		  "bridge": {"listen": "127.0.0.1:0"}
		}
	JSON
	# What is denied, its generator cannot take in any form:
	# python  has no enum of fractions; of names that become one identifier it loses one
	# java    gives a class of several types a default of one; has names that become one
	# golang  has names that become one; its format strings take %2F in a path for a verb
	cat >"$out/shapes.json" <<-JSON
		{
		  "mcpServers": {
		    "shapes": {"command": "node", "args": ["$here/shapes.mjs"]},
		    "shapes_python": {"command": "node", "args": ["$here/shapes.mjs"], "tools": {"deny": ["enumeration-of-fractions", "names-that-collide"]}},
		    "shapes_java": {"command": "node", "args": ["$here/shapes.mjs"], "tools": {"deny": ["default-of-alternatives", "names-that-collide"]}},
		    "shapes_golang": {"command": "node", "args": ["$here/shapes.mjs"], "tools": {"deny": ["names-that-collide", "{id}", "a/b"]}}
		  },
		  "bridge": {"listen": "127.0.0.1:0"}
		}
	JSON
	start real
	export BRIDGE=$address
	start shapes
	export SHAPES=$address
}

# fetch takes one document, and refuses one that lacks what it is there for.
fetch() {
	curl -sS --fail-with-body -o "$2" "$1" || die "$1: $(<"$2")"
	grep -q '"operationId"' "$2" || die "$1 has no operation"
}

documents() {
	local version suffix folder handle
	fetch "$BRIDGE/openapi-bridge.json" "$DOCS/bridge.json"
	for version in "${versions[@]}"; do
		case $version in
		3.1) suffix='' folder=$DOCS ;;
		*) suffix=-$version folder=$DOCS/$version ;;
		esac
		mkdir -p "$folder"
		fetch "$BRIDGE/openapi$suffix.json" "$folder/all.json"
		for handle in "${handles[@]}"; do
			fetch "$BRIDGE/tools/$handle/openapi$suffix.json" "$folder/$handle.json"
		done
		for handle in "${shapes[@]}"; do
			fetch "$SHAPES/tools/$handle/openapi$suffix.json" "$folder/$handle.json"
		done
	done
}

# The consumers. Each runs in a process of its own, in its folder.

validate() {
	cd npm
	node validate.mjs
}

# One for both TypeScript generators: the compiler checks at once what both wrote.
typescript() {
	cd npm
	local bin=$PWD/node_modules/.bin document name
	rm -rf gen/fetch gen/hey gen/js
	for document in "$DOCS"/{all,demo,shapes}.json; do
		name=$(basename "$document" .json)
		# As .d.ts the compiler would believe it unseen.
		"$bin/openapi-typescript" "$document" -o "gen/fetch/$name.ts"
	done
	for name in all demo shapes; do
		"$bin/openapi-ts" -i "$DOCS/$name.json" -o "gen/hey/$name" -c @hey-api/client-fetch --no-log-file
	done
	"$bin/tsc"
	node gen/js/src/fetch.js
	node gen/js/src/hey.js
	node gen/js/src/shapes.js
}

python() {
	cd python
	rm -rf gen
	mkdir gen
	# The generator formats what it wrote with ruff, which it looks for in the path.
	local name
	for name in all shapes_python; do
		PATH=$PWD/.venv/bin:$PATH openapi-python-client generate --fail-on-warning --meta none \
			--path "$DOCS/$name.json" --output-path "gen/${name}_client"
	done
	PYTHONPATH=gen .venv/bin/python calls.py
	PYTHONPATH=gen .venv/bin/python shapes.py
}

# From OpenAPI 3.0, the only one that oapi-codegen reads.
golang() {
	cd go
	rm -rf gen
	mkdir -p gen/{client,shapes}
	go tool oapi-codegen -config oapi-codegen.yaml -package client -o gen/client/client.go "$DOCS/3.0/all.json"
	go tool oapi-codegen -config oapi-codegen.yaml -package shapes -o gen/shapes/shapes.go "$DOCS/3.0/shapes_golang.json"
	go vet ./...
	go run .
}

# Random arguments, right and wrong, by what the document says. Its rules are in
# schemathesis.toml and checks.py. Left out are tools that are slow on purpose, use
# the network, show this machine's environment, or write files.
schemathesis() {
	cd python
	local -r left_out='countdown|trigger-long-running-operation|simulate-research-query|gzip-file-as-resource|get-env|write_file|edit_file|create_directory|move_file'
	.venv/bin/schemathesis --no-color run "$BRIDGE/openapi.json" --url "$BRIDGE" \
		--exclude-path-regex "/($left_out)\$"
	# It takes prefixItems for a fault of the document, and formats for rules, which
	# they are not in JSON Schema.
	.venv/bin/schemathesis --no-color run "$SHAPES/tools/shapes/openapi.json" --url "$SHAPES/tools/shapes" \
		--exclude-path-regex '/(tuple|formats)$'
}

java() {
	cd java
	rm -rf target
	mvn -q -B -Dstyle.color=never compile exec:java -Ddocuments="$DOCS"
}

[[ -x $servers/mcp-server-everything ]] || die 'the MCP servers are not installed: make deps'
start_all
documents

for consumer in "${consumers[@]}"; do
	[[ $(type -t "$consumer") == function ]] || die "no consumer $consumer"
done

# consume runs one consumer, and says at its end how it was.
consume() {
	local -r began=$SECONDS
	# Not in a condition, where bash would ignore set -e inside.
	set +e
	(set -e; "$1") >"$out/log/$1" 2>&1 </dev/null
	local -r status=$?
	set -e
	if ((status == 0)); then
		printf 'ok   %-12s %3ds\n' "$1" $((SECONDS - began))
	else
		# In one piece, since another may end at the same time.
		printf 'FAIL %-12s %3ds\n%s\n' "$1" $((SECONDS - began)) "$(sed 's/^/     /' "$out/log/$1")"
	fi
	return "$status"
}

# Two at a time: most of them wait for a compiler that uses one core.
passed=0 failed=0
collect() {
	local status=0 ended
	wait -n -p ended "${!running[@]}" || status=$?
	unset "running[$ended]"
	if ((status == 0)); then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}
for consumer in "${consumers[@]}"; do
	limit=2
	# It calls everything with anything, also what the others have just written and read.
	[[ $consumer == schemathesis ]] && limit=1
	while ((${#running[@]} >= limit)); do collect; done
	set -m # in a process group, so that all of it can be stopped
	consume "$consumer" &
	set +m
	running[$!]=$consumer
done
while ((${#running[@]} > 0)); do collect; done
printf 'clients: %d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
