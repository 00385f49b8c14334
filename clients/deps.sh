#!/usr/bin/env bash
# Installs the programs that the consumers run on, where they are missing: a JDK,
# Maven, and Python with its environments. Silent when all of them are there.
set -euo pipefail

die() {
	printf 'clients/deps: %s\n' "$*" >&2
	exit 1
}

packages=()
command -v javac >/dev/null || packages+=(default-jdk-headless)
command -v mvn >/dev/null || packages+=(maven)
command -v curl >/dev/null || packages+=(curl)
python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3 python3-venv)
if ((${#packages[@]} > 0)); then
	command -v apt-get >/dev/null || die "install these by hand, there is no apt-get here: ${packages[*]}"
	root=()
	if ((EUID != 0)); then
		command -v sudo >/dev/null || die "needs root to install: ${packages[*]}"
		root=(sudo)
	fi
	apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq)
	"${apt[@]}" update
	"${apt[@]}" install -y --no-install-recommends "${packages[@]}"
fi

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die 'Python 3.11 or newer is needed'
release=$(javac --version)
release=${release#javac }
((${release%%.*} >= 17)) || die "Java 17 or newer is needed, this is $release"
