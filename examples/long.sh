#!/usr/bin/env bash
# Shows long calls with curl: one that is waited for, streamed and run as a job; a tool's question
# answered; and a call cancelled. It needs a bridge with this configuration:
#
#   mcpServers:
#     everything:
#       command: npx
#       args: [-y, "@modelcontextprotocol/server-everything"]
#       elicitation: true   # its tools may ask the caller
#       sharing: user       # over stdio nobody else's call may be under way then
#
#   examples/long.sh [URL of the bridge] [seconds that the tool is to run]
set -euo pipefail
bridge=${1:-http://127.0.0.1:8080} seconds=${2:-120}
tools=$bridge/tools/everything
json=(-H 'Content-Type: application/json')
work="{\"duration\": $seconds, \"steps\": 24}"

show() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }

# The URL of the job that an answer's Location names.
job() { sed -n 's/^[Ll]ocation: \(\.\.\/\)*\(.*\)\r$/\2/p' "$1" | sed "s|^|$bridge/|"; }

headers=$(mktemp)
trap 'rm -f "$headers"' EXIT

show "A plain call waits for its answer. Progress keeps it alive, for bridge.timeouts.maxTimeout (10m) at most."
curl -sS --fail-with-body -X POST "$tools/trigger-long-running-operation" "${json[@]}" -d "$work"
echo

show "Accept: text/event-stream shows its progress, and the answer as the last event."
curl -sS -N --fail-with-body -X POST "$tools/trigger-long-running-operation" "${json[@]}" -H 'Accept: text/event-stream' -d "$work"

show "Prefer: respond-async answers at once with a job. GET with Prefer: wait=N waits for its end."
curl -sS --fail-with-body -D "$headers" -X POST "$tools/trigger-long-running-operation" "${json[@]}" -H 'Prefer: respond-async' -d "$work"
echo
url=$(job "$headers")
until curl -sS --fail-with-body "$url" -H 'Prefer: wait=30' | tee /dev/stderr | grep -q '"state":"done"'; do echo; done
echo
show "Its result is an artifact. The job's events can be read from the beginning, or from Last-Event-ID on."
ref=$(curl -sS "$url" | sed 's/.*"artifact_ref":"\([^"]*\)".*/\1/')
curl -sS --fail-with-body "$bridge/artifacts/$ref"
echo
curl -sS --fail-with-body "$url/events"

show "A tool that asks something makes a plain call a job, in state input_required."
curl -sS --fail-with-body -D "$headers" -X POST "$tools/trigger-elicitation-request" | sed 's/"schema":{.*}}}*/"schema":…/'
echo
url=$(job "$headers")
show "What does not fit what was asked is refused, and says where."
curl -sS -X POST "$url/input" "${json[@]}" -d '{"action": "accept", "content": {"name": "Ada", "integer": 101}}'
echo
show "What fits answers it, and the call goes on."
curl -sS --fail-with-body -X POST "$url/input" "${json[@]}" -d '{"action": "accept", "content": {"name": "Ada", "integer": 7}}' -w '%{http_code}\n'
curl -sS --fail-with-body "$url" -H 'Prefer: wait=10' -o /dev/null
ref=$(curl -sS "$url" | sed 's/.*"artifact_ref":"\([^"]*\)".*/\1/')
curl -sS --fail-with-body "$bridge/artifacts/$ref?pointer=/content/1/text" -H 'Accept: text/plain'
echo

show "DELETE cancels a job, and the server is told. The job stays readable."
curl -sS --fail-with-body -D "$headers" -o /dev/null -X POST "$tools/trigger-long-running-operation" "${json[@]}" -H 'Prefer: respond-async' -d '{"duration": 600, "steps": 600}'
url=$(job "$headers")
curl -sS --fail-with-body -X DELETE "$url" -w '%{http_code}\n'
curl -sS --fail-with-body "$url" -H 'Prefer: wait=10'
echo
