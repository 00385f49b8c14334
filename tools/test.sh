#!/usr/bin/env bash
# Runs every test with the race detector. The
# tests of cmd/bridge mostly wait, for programs that they start, so that parts
# of them run side by side, and beside the other packages. The manifests are checked
# in a module of their own. To vet is left to make lint.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly parts=3
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

CGO_ENABLED=1 go test -race -c -o "$out/bridge.test" ./cmd/bridge
mapfile -t tests < <(cd cmd/bridge && "$out/bridge.test" -test.list '^Test')
((${#tests[@]} > 0))

# part runs every third test of cmd/bridge, and says how that went.
part() {
	local -a mine=()
	local i
	for ((i = $1; i < ${#tests[@]}; i += parts)); do
		mine+=("${tests[i]}")
	done
	local pattern
	pattern=$(IFS='|' && printf '^(%s)$' "${mine[*]}")
	cd cmd/bridge
	"$out/bridge.test" -test.timeout 20m -test.run "$pattern" >"$out/$1" 2>&1
}

pids=()
for ((n = 0; n < parts; n++)); do
	part "$n" &
	pids+=($!)
done
status=0
mapfile -t others < <(go list ./... | grep -v '/cmd/bridge$')
CGO_ENABLED=1 go test -race -vet=off -timeout 20m "${others[@]}" || status=1
(cd deploy/kubernetes/check && go test ./...) || status=1
for ((n = 0; n < parts; n++)); do
	if wait "${pids[n]}"; then
		printf 'ok  \tmcpbridge/cmd/bridge\tpart %d of %d: %s\n' $((n + 1)) "$parts" "$(tail -n 1 "$out/$n")"
	else
		status=1
		cat "$out/$n"
	fi
done
exit "$status"
