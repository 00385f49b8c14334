#!/usr/bin/env bash
# Installs the programs that the tests run, where they are missing: a C compiler
# for the race detector, Node.js for the MCP servers, Chromium for the pages,
# Redis for the stores, HAProxy for replicas, promtool for the rules of alerts,
# systemd for its unit. It says nothing when all of them are there, and fails when
# one cannot be had: a test that lacks its program must not pass.
set -euo pipefail

readonly node_major=20
PATH=$PATH:/usr/sbin # where Debian has HAProxy

have() { command -v "$1" >/dev/null 2>&1; }
have_any() {
	local name
	for name in "$@"; do
		if have "$name"; then return 0; fi
	done
	return 1
}
die() {
	printf 'deps: %s\n' "$*" >&2
	exit 1
}

packages=()
have_any cc gcc clang || packages+=(gcc libc6-dev)
have_any chromium chromium-browser google-chrome || packages+=(chromium)
have redis-server || packages+=(redis-server)
have haproxy || packages+=(haproxy)
have promtool || packages+=(prometheus)
have systemd-analyze || packages+=(systemd)
have node || packages+=(nodejs)
have npm || packages+=(npm)

if ((${#packages[@]} > 0)); then
	have apt-get || die "install these by hand, there is no apt-get here: ${packages[*]}"
	root=()
	if ((EUID != 0)); then
		have sudo || die "needs root to install: ${packages[*]}"
		root=(sudo)
	fi
	# env, because sudo does not pass the environment on.
	apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq)
	# The programs are wanted, not the services that some packages would start.
	readonly policy=/usr/sbin/policy-rc.d
	if [[ ! -e $policy ]]; then
		trap '"${root[@]}" rm -f "$policy"' EXIT
		printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee "$policy" >/dev/null
		"${root[@]}" chmod +x "$policy"
	fi
	# Package lists are often missing (a fresh container) or older than the mirror.
	"${apt[@]}" update
	"${apt[@]}" install -y --no-install-recommends "${packages[@]}"
fi

have_any cc gcc clang || die "no C compiler: the race detector needs one"
have_any chromium chromium-browser google-chrome || die "no Chromium"
have redis-server || die "no redis-server"
have haproxy || die "no haproxy"
have promtool || die "no promtool"
have systemd-analyze || die "no systemd-analyze"
have npm || die "no npm"
have node || die "no node"
version=$(node --version)
major=${version#v}
major=${major%%.*}
((major >= node_major)) || die "Node.js $node_major or newer is needed, $(command -v node) is $version"
