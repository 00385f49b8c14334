# Two images: the bridge alone, for remote servers and the demo,
#
#   docker build -t mcp-bridge .
#
# and the bridge beside Node.js, for servers that npx starts:
#
#   docker build -t mcp-bridge:node --target node .
#
# Neither runs as root or writes to its file system, which may be read-only; for
# the second, give /tmp a file system in memory from which programs may run
# (--tmpfs /tmp:exec), since npx puts there what it fetches.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags=-s -o /bridge ./cmd/bridge

FROM node:22-slim AS node
COPY --from=build /bridge /usr/local/bin/bridge
ENV HOME=/tmp npm_config_cache=/tmp/npm npm_config_update_notifier=false
USER 1000:1000
WORKDIR /tmp
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["/usr/local/bin/bridge", "health"]
ENTRYPOINT ["/usr/local/bin/bridge"]
CMD ["serve", "--demo"]

FROM scratch AS bridge
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /bridge /bridge
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["/bridge", "health"]
ENTRYPOINT ["/bridge"]
CMD ["serve", "--demo"]
