package config

import "strings"

// A docKey is what docs/configuration.md says of a key besides what the code says.
type docKey struct {
	path    string
	means   string
	kind    string // empty: the type of the field
	def     string // empty: the default of the field
	restart bool   // a running bridge does not follow a change
}

// words are the words that a key can be.
func words[T ~string](all ...T) string {
	var b strings.Builder
	for i, w := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("`" + string(w) + "`")
	}
	return b.String()
}

// docKeys are all keys, in the order of the documentation.
var docKeys = []docKey{
	{path: "mcpServers", kind: "mapping", def: "none", means: "The MCP servers by their handles: the names that stand in paths."},
	{path: "servers", kind: "mapping", def: "none", means: "The same, as VS Code writes it."},
	{path: "bridge", kind: "mapping", def: "none", means: "Everything that is not about one server."},
	{path: "inputs", kind: "list", def: "none", means: "Of VS Code's files; has no effect, which a warning says."},
	{path: "$schema", kind: "text", def: "none", means: "Ignored."},

	{path: "mcpServers.*.command", means: "The program of a local server. It is one program, never split into words, and no shell reads it."},
	{path: "mcpServers.*.args", means: "Its arguments."},
	{path: "mcpServers.*.env", means: "Variables over the bridge's own environment, which the process gets too. Values are secret."},
	{path: "mcpServers.*.cwd", means: "Its directory, relative to the file; else the bridge's own."},
	{path: "mcpServers.*.url", means: "The address of a remote server, http or https. A server has either this or `command`."},
	{path: "mcpServers.*.type", kind: "word", def: "by `command` or `url`", means: "`stdio` (`local`, `process`), `http` (`streamable-http`, `streamable_http`, `streamableHttp`, `mcp`) or `sse` (`server-sent-events`, `event-stream`)."},
	{path: "mcpServers.*.transport", kind: "word", def: "none", means: "The same as `type`."},
	{path: "mcpServers.*.headers", means: "Sent with every request to a remote server. Values are secret."},
	{path: "mcpServers.*.forwardHeaders", means: "Names of headers that a call's own request hands on to a remote server, with that call alone. Never `Authorization`, `X-API-Key` or `Cookie`."},
	{path: "mcpServers.*.proxy", means: "A URL (http, https, socks5, socks5h), or `none`; else what the environment says (`HTTPS_PROXY` and so on)."},
	{path: "mcpServers.*.protocol", kind: words(protocols...), means: "The protocol version to speak with a remote server. `auto` finds out."},
	{path: "mcpServers.*.disabled", means: "Shown as `disabled`, never started. Its `${…}` may be unset."},
	{path: "mcpServers.*.enabled", kind: "boolean", def: "`true`", means: "The opposite, as some hosts write it."},
	{path: "mcpServers.*.name", def: "the handle", means: "The name of its accounts in `/status`, problems and metrics."},
	{path: "mcpServers.*.title", means: "For people, in documents and lists."},
	{path: "mcpServers.*.description", means: "For people, in documents and lists."},
	{path: "mcpServers.*.tools", kind: "mapping or list", def: "all", means: "Which of its tools there are; a list is its `allow`."},
	{path: "mcpServers.*.tools.allow", means: "Globs on names of tools; an empty list is none. In a glob `*` matches slashes too."},
	{path: "mcpServers.*.tools.deny", means: "Globs, stronger than `allow`."},
	{path: "mcpServers.*.disabledTools", kind: "list", def: "none", means: "Exact names of tools to leave out, as mcpo has it."},
	{path: "mcpServers.*.disabled_tools", kind: "list", def: "none", means: "The same."},
	{path: "mcpServers.*.timeout", def: "`bridge.timeouts.call`", means: "Time that it may be silent in a call; `bridge.timeouts.maxTimeout` at most. Progress starts it anew."},
	{path: "mcpServers.*.startTimeout", def: "`bridge.timeouts.start`", means: "Time for a process to start; for servers with `command`."},
	{path: "mcpServers.*.handshakeTimeout", def: "`bridge.timeouts.handshake`", means: "Time for the handshake of MCP."},
	{path: "mcpServers.*.idleTimeout", def: "`bridge.pool.idleTimeout`", means: "A process, or a connection of one user's or tenant's own, that has had no call for so long is ended; the next call starts it again. `0`: never."},
	{path: "mcpServers.*.maxConcurrent", def: "`bridge.pool.stdioCallsPerServer` with `command`, else none", means: "Calls at a time."},
	{path: "mcpServers.*.rate", means: "Calls in a time, as `10/s`, `100/m` or `1000/h`. Calls above it wait in line."},
	{path: "mcpServers.*.autoReconnect", means: "Whether a server whose connection failed or ended is looked for in the background."},
	{path: "mcpServers.*.reconnectDelay", means: "The time before the first such attempt. Each next one takes twice as long, up to five minutes."},
	{path: "mcpServers.*.heartbeat", means: "Time between pings of a remote server that has a session. `0`: none."},
	{path: "mcpServers.*.sharing", kind: words(Shared, PerTenant, PerUser), means: "Who shares one process or connection: all callers, those of one tenant, or nobody."},
	{path: "mcpServers.*.parseText", means: "A result that is one text block holding a JSON object or list is answered as that JSON."},
	{path: "mcpServers.*.checkResults", kind: words(CheckLog, CheckStrict), means: "What happens to a result that breaks the tool's own output schema: it is answered and logged, or the call fails (502)."},
	{path: "mcpServers.*.elicitation", means: "Whether the server may ask the caller something in the middle of a call. A process of a version with sessions needs `sharing: user` for it."},

	{path: "mcpServers.*.credential.clientId", means: "The bridge's name at the authorization server. Required."},
	{path: "mcpServers.*.credential.clientSecret", means: "Its secret. Exactly one of this and `privateKey` is there."},
	{path: "mcpServers.*.credential.privateKey", means: "A key in PEM form that signs assertions (private_key_jwt), best as `${file:key.pem}`."},
	{path: "mcpServers.*.credential.keyId", means: "The `kid` of that key."},
	{path: "mcpServers.*.credential.algorithm", kind: words(algorithms...), def: "the usual one for the key", means: "How assertions are signed."},
	{path: "mcpServers.*.credential.scopes", def: "what the server advertises", means: "Scopes to ask for; one word or a list."},
	{path: "mcpServers.*.credential.issuer", def: "the one discovered", means: "The authorization server to insist on. Without it the MCP server itself names who gets to see the secret."},

	{path: "mcpServers.*.tls.ca", def: "the system's", means: "Path of the certificates (PEM) to trust instead."},
	{path: "mcpServers.*.tls.cert", means: "Path of a client certificate (PEM)."},
	{path: "mcpServers.*.tls.key", means: "Path of its key (PEM). Both or none."},
	{path: "mcpServers.*.tls.serverName", def: "the host of `url`", means: "The name to expect in the server's certificate."},

	{path: "bridge.listen", restart: true, means: "`host:port`. Beyond loopback `auth.keys` or `auth.jwt` is needed, or `serve --insecure-no-auth`."},
	{path: "bridge.basePath", restart: true, means: "The path in front of all others, as `/bridge`, behind a proxy that keeps it."},
	{path: "bridge.hosts", restart: true, means: "Names that requests may have in `Host`. On loopback `localhost` and loopback addresses are right besides; elsewhere, without this key, any name is."},
	{path: "bridge.readyGrace", restart: true, means: "The longest that `/readyz` and documents wait for servers' first answers."},
	{path: "bridge.drainDelay", restart: true, means: "Time from SIGTERM, when `/readyz` begins to say 503, until new connections are refused."},
	{path: "bridge.shutdownGrace", restart: true, means: "Time that requests and jobs under way have to end after that."},
	{path: "bridge.cancelGrace", restart: true, means: "Time that a server has to let go of a cancelled call before its slot is given to the next."},
	{path: "bridge.descriptionChars", restart: true, means: "Characters of a tool's description in documents."},
	{path: "bridge.timeouts.call", means: "Default of the servers' `timeout`."},
	{path: "bridge.timeouts.maxTimeout", restart: true, means: "What no call may pass, progress or not, whoever asks for it."},
	{path: "bridge.timeouts.start", means: "Default of the servers' `startTimeout`."},
	{path: "bridge.timeouts.handshake", means: "Default of the servers' `handshakeTimeout`."},
	{path: "bridge.pool.stdioCalls", restart: true, means: "Calls at a time on all processes together."},
	{path: "bridge.pool.stdioCallsPerServer", means: "Default of `maxConcurrent` of servers with `command`."},
	{path: "bridge.pool.httpCalls", restart: true, means: "Calls at a time on all remote servers together."},
	{path: "bridge.pool.maxProcesses", restart: true, means: "Processes of servers. Above it the one idle longest is ended; if none is idle the call is 503."},
	{path: "bridge.pool.connects", restart: true, means: "Connections that are being made at a time."},
	{path: "bridge.pool.idleTimeout", means: "Default of the servers' `idleTimeout`. `0`: never."},
	{path: "bridge.queue.maxWait", restart: true, means: "The longest that a call waits for admission; one begun with `respond-async` waits as long as it may take. `0`: not at all."},
	{path: "bridge.queue.maxWaiting", restart: true, means: "Calls that may wait."},
	{path: "bridge.queue.maxWaitingPerCaller", restart: true, means: "Calls of one caller that may wait."},
	{path: "bridge.breaker.failures", restart: true, means: "Failures in a row that open a server's circuit. A failed connection opens it at once."},
	{path: "bridge.breaker.cooldown", restart: true, means: "Time that calls fail at once (503) before one is let through as a probe."},
	{path: "bridge.breaker.maxCooldown", restart: true, means: "Each failed probe doubles the time, up to this."},
	{path: "bridge.limits.requestBytes", restart: true, means: "The largest body of a request."},
	{path: "bridge.limits.resultBytes", restart: true, means: "The largest result that is taken from a server."},
	{path: "bridge.limits.nesting", restart: true, means: "How deep arguments may nest."},
	{path: "bridge.limits.toolsPerServer", restart: true, means: "Tools that are read of one server."},
	{path: "bridge.limits.pages", restart: true, means: "Pages of a list that are read of one server."},
	{path: "bridge.artifacts.store", restart: true, means: "Where results are kept: `memory`, or the URL of a Redis, which then keeps jobs, answers under an `Idempotency-Key` and callers' rates too. `redis://host:6379/0`, `rediss://…`, Sentinel `?master_name=`, Cluster `?addr=`."},
	{path: "bridge.artifacts.bytes", restart: true, means: "Size of the memory store; the oldest go first. `0`: it keeps nothing."},
	{path: "bridge.artifacts.ttl", restart: true, means: "How long a result is kept."},
	{path: "bridge.artifacts.promoteBytes", restart: true, means: "An object inside a result that is larger gets a reference of its own."},
	{path: "bridge.artifacts.summaryAfter", restart: true, means: "A text of more characters is shortened in summaries."},
	{path: "bridge.artifacts.summaryChars", restart: true, means: "Characters that are left of it."},
	{path: "bridge.artifacts.summaries", restart: true, means: "Entries of the cache of summaries. `0`: no cache."},
	{path: "bridge.artifacts.types", restart: true, kind: "mapping", def: "none", means: "More types of artifacts that other bridges made, as `link:paper`, each with its JSON Schema."},
	{path: "bridge.jobs.ttl", restart: true, means: "How long a job that has ended can be read."},
	{path: "bridge.jobs.perCaller", restart: true, means: "Jobs of one caller that may run at a time."},
	{path: "bridge.jobs.inputWait", restart: true, means: "The longest that a job waits for the answer to what it asked."},
	{path: "bridge.jobs.events", restart: true, means: "Events that are kept of each job for those who come later."},
	{path: "bridge.idempotency.ttl", restart: true, means: "How long an answer is kept under its `Idempotency-Key`."},
	{path: "bridge.cors.origins", restart: true, means: "Origins whose pages may call from a browser, as `https://app.example.com`, or `\"*\"`."},
	{path: "bridge.sources.redis", restart: true, means: "URL of a Redis with more servers, which all bridges on it share, and which `/admin` changes."},
	{path: "bridge.admin.stateFile", restart: true, means: "Without that, the file of the bridge's own in which `/admin` keeps servers."},
	{path: "bridge.admin.allowCommands", means: "Whether servers that `/admin` puts may start processes and name files of this machine."},
	{path: "bridge.operationIds", restart: true, kind: words(OperationIDsPlain, OperationIDsMCPO), means: "How operations are named in a server's own document: `read_file`, or `tool_read_file_post` as with mcpo."},
	{path: "bridge.compat.mcpo", restart: true, means: "Whether `/mcpo` is served. See [mcpo](mcpo.md)."},
	{path: "bridge.telemetry.logLevel", restart: true, kind: "`debug`, `info`, `warn`, `error`", def: "`info`", means: "The least level of lines in the log."},
	{path: "bridge.telemetry.otlp", restart: true, means: "URL of a collector of OpenTelemetry traces."},
	{path: "bridge.telemetry.debugListen", restart: true, means: "`host:port` on loopback for profiles of the bridge itself."},

	{path: "bridge.auth.keys[].id", means: "Names the key in the log. Required; each its own."},
	{path: "bridge.auth.keys[].hash", means: "`sha256:…`, as `bridge keys new` prints it. Required."},
	{path: "bridge.auth.keys[].user", def: "`id`", means: "Whose key it is. Artifacts, jobs and servers of one's own belong to user and tenant, not to a key."},
	{path: "bridge.auth.keys[].tenant", means: "The user's tenant."},
	{path: "bridge.auth.keys[].scopes", kind: "list of " + words(ScopeCall, ScopeAdmin, ScopeMetrics), def: "`[call]`", means: "What it may do at all."},
	{path: "bridge.auth.jwt[].issuer", means: "URL of the issuer, https except on loopback. Required."},
	{path: "bridge.auth.jwt[].audience", means: "One word or a list, of which a token must name one. Required."},
	{path: "bridge.auth.jwt[].user", def: "`sub`", means: "Name of the claim that is the user."},
	{path: "bridge.auth.jwt[].tenant", means: "Name of the claim that is the tenant. With it, a token without such a claim is refused."},
	{path: "bridge.auth.jwt[].scopes", means: "Name of the claim that has scopes; without this key each token may `call`, and nothing else."},
	{path: "bridge.auth.anonymous", kind: "mapping or boolean", def: "none", means: "What callers without a credential may do. `true` is a mapping without keys. Beside `keys` or `jwt`, without this key they get 401."},
	{path: "bridge.auth.anonymous.allow", means: "Globs on `server/tool`, `server/prompt` and `server/uri`; an empty list is nothing, no list everything but `bridge/*`."},
	{path: "bridge.auth.anonymous.deny", means: "Globs, stronger than `allow`."},
	{path: "bridge.auth.anonymous.rate", means: "Calls in a time, as `100/m`; over it 429."},
	{path: "bridge.auth.anonymous.burst", def: "the count of `rate`", means: "Calls that may come at once."},
	{path: "bridge.auth.anonymous.concurrent", def: "none", means: "Calls at a time; over it 429."},
	{path: "bridge.auth.anonymous.timeout", def: "the server's", means: "Time limit of a call."},
}

// A key and a token's issuer have all that guests have.
func init() {
	for _, k := range docKeys {
		if name, ok := strings.CutPrefix(k.path, "bridge.auth.anonymous."); ok {
			for _, section := range []string{"bridge.auth.keys[].", "bridge.auth.jwt[]."} {
				k.path = section + name
				docKeys = append(docKeys, k)
			}
		}
	}
}
