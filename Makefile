# The targets that people and CI use; "make" alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# All that the Go command would otherwise take from a machine's own settings is
# decided here, so that a target does the same everywhere, and so that all of them
# compile a package in two ways at most: with the race detector, which needs cgo
# and so a C compiler, and without.
export GOFLAGS := -buildvcs=false -mod=readonly -trimpath
export GOTOOLCHAIN := local
export GOWORK := off
export CGO_ENABLED := 0
RACE := CGO_ENABLED=1 GOFLAGS='$(GOFLAGS) -race'

# What to check, for work on one part: make lint test PKG=./internal/web/...
PKG ?= ./...
# More flags for go test: make test ARGS='-run TestDocs -v'
ARGS ?=
# Which consumers to run, all by default: make clients CONSUMERS='typescript java'
CONSUMERS ?=

NPM := testdata/npm
CLIENTS := clients
CONFORMANCE := clients/conformance
# Prints where the linters are, once they are built; a module file of their own keeps them out of go.mod.
LINT := go tool -n -modfile=tools/go.mod golangci-lint

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: deps
deps: programs $(NPM)/node_modules/.stamp ## install what the tests need (apt, npm); quiet when all is there

.PHONY: programs
programs:
	@tools/deps.sh

# npm clears node_modules before it installs, so the stamp inside is there only
# after an install that went through to its end. No setting is left to a
# .npmrc in somebody's home, and no package's install script is run.
%/node_modules/.stamp: %/package.json %/package-lock.json %/.npmrc | programs
	cd $* && npm ci --ignore-scripts --no-fund --no-audit --no-progress --no-update-notifier --loglevel=error
	@touch $@

.PHONY: build
build: ## build bin/bridge, a static binary
	go build -o bin/bridge ./cmd/bridge

.PHONY: run
run: build ## serve the built-in demo server on 127.0.0.1:8080; needs only Go
	@bin/bridge serve --demo

.PHONY: test
test: deps ## run every test with the race detector
ifeq ($(PKG)$(ARGS),./...)
	tools/test.sh
else
	CGO_ENABLED=1 go test -race -timeout 10m $(ARGS) $(PKG)
endif

.PHONY: clients
clients: deps client-programs $(CLIENTS)/npm/node_modules/.stamp $(CLIENTS)/python/.venv/.stamp ## generate clients from a live bridge's documents, and call it with them
	$(CLIENTS)/run.sh $(CONSUMERS)

$(CLIENTS)/python/.venv/.stamp: $(CLIENTS)/python/requirements.txt | client-programs
	python3 -m venv --clear $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement $<
	@touch $@

# ARGS=-update writes the table in docs/conformance.md.
.PHONY: conformance
conformance: deps $(CONFORMANCE)/node_modules/.stamp ## run the official conformance suite of MCP against the bridge, as server and as client
	go run ./$(CONFORMANCE) $(ARGS)

.PHONY: client-programs
client-programs:
	@$(CLIENTS)/deps.sh

# With the race detector, since what it needs compiled the tests need, too.
.PHONY: lint
lint: ## check form, vet, modernity and go.mod; changes nothing, needs a C compiler
	go mod tidy -diff
	go mod verify
	$(RACE) go vet $(PKG)
	$(RACE) go fix -diff $(PKG)
	linters=$$($(LINT)); $(RACE) $$linters run $(PKG)

.PHONY: fix
fix: ## apply what lint can mend by itself
	go mod tidy
	$(RACE) go fix $(PKG)
	linters=$$($(LINT)); $(RACE) $$linters run --fix $(PKG); $$linters fmt $(PKG)

# Nothing else should run beside it. ARGS=-short takes less than a minute, bin/bench -help lists the rest.
.PHONY: bench
bench: build ## measure the bridge against its limits and peers: bench/results.md
	go build -o bin/bench ./bench
	bin/bench -bridge bin/bridge -results bench $(ARGS)

.PHONY: microbench
microbench: ## run the benchmarks of the packages
	go test -run '^$$' -bench . -benchmem $(ARGS) $(PKG)

# Written aside first: a program that fails must not leave an empty document.
.PHONY: openapi
openapi: ## regenerate api/openapi.yaml from the fixed operations
	@mkdir -p api bin
	go run ./cmd/bridge openapi --fixed >bin/openapi.yaml
	mv bin/openapi.yaml api/openapi.yaml

.PHONY: docs
docs: ## write anew the tables of docs/ that come from the code
	go test ./internal/config ./internal/routes ./internal/openapi -run '^TestDocs$$' -update
	UPDATE=1 go test ./cmd/bridge -run '^TestDocsListMetrics$$'
