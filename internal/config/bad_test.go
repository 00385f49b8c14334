package config_test

import (
	"errors"
	"strings"
	"testing"

	"mcpbridge/internal/config"
)

// lines joins what an error should print.
func lines(ls ...string) string { return strings.Join(ls, "\n") }

func TestBadServers(t *testing.T) {
	// Each entry is line 2 of a file.
	for _, tc := range []struct{ name, entry, want string }{
		{"neither", `a: {args: [x]}`, "line 2: mcpServers.a: has neither command nor url; a server needs one of them"},
		{"null", `a:`, "line 2: mcpServers.a: is null; a server needs command or url"},
		{"not a mapping", `a: npx`, "line 2: mcpServers.a: must be a mapping, not text"},
		{"list", `a: [npx]`, "line 2: mcpServers.a: must be a mapping, not a list"},
		{"command as a list", `a: {command: [npx, -y]}`, "line 2: mcpServers.a.command: must be text, not a list"},
		{"empty command", `a: {command: ""}`, `line 2: mcpServers.a.command: "" is empty`},
		{"args as text", `a: {command: npx, args: -y foo}`, "line 2: mcpServers.a.args: must be a list, not text"},
		{"null in args", `a: {command: npx, args: [a, ~]}`, `line 2: mcpServers.a.args[1]: is null; write "" for empty text`},
		{"null in env", `a: {command: npx, env: {KEY: }}`, `line 2: mcpServers.a.env.KEY: is null; write "" for empty text`},
		{"env as a list", `a: {command: npx, env: [KEY=s3cret]}`, "line 2: mcpServers.a.env: must be a mapping, not a list"},
		{"env value a mapping", `a: {command: npx, env: {KEY: {s3cret: 1}}}`, "line 2: mcpServers.a.env.KEY: must be text, not a mapping"},
		{"name of a variable", `a: {command: npx, env: {"s3cret=": 1}}`, "line 2: mcpServers.a.env: the name of a variable is empty, or holds an equals sign"},
		{"variable twice", `a: {command: npx, env: {"s3cret +/": 1, "s3cret +/": 2}}`, "line 2: mcpServers.a.env[…]: is here twice; first in line 2"},
		{"empty handle", `"": {command: x}`, `line 2: mcpServers[""]: the name of a server is empty; give it one, its tools are called by it`},
		{"control character", `"a\nb": {command: x}`, `line 2: mcpServers["a\nb"]: the name of a server holds control characters; give it another`},
		{"dots", `..: {command: x}`, `line 2: mcpServers[".."]: a name of dots cannot be in a path; give the server another`},
		{"space", `" a": {command: x}`, `line 2: mcpServers[" a"]: the name of a server has space around it; take it away`},
		{
			"long handle", strings.Repeat("x", 100) + `: {}`,
			`line 2: mcpServers["` + strings.Repeat("x", 57) + `…"]: has neither command nor url; a server needs one of them`,
		},
		{"sse with command", `a: {command: x, type: sse}`, "line 2: mcpServers.a.type: names a transport for servers with a url, but there is a command; leave it out"},
		{"stdio with url", `a: {url: "http://x/", transport: stdio}`, "line 2: mcpServers.a.transport: names a transport for servers with a command, but there is a url; leave it out"},
		{"two words", `a: {url: "http://x/", type: http, transport: sse}`, "line 2: mcpServers.a.transport: contradicts type; write one of them"},
		{"disabled and enabled", `a: {command: x, disabled: true, enabled: true}`, "line 2: mcpServers.a.enabled: contradicts disabled; write one of them"},
		{"disabled as text", `a: {command: x, disabled: "yes"}`, "line 2: mcpServers.a.disabled: must be true or false, not text"},
		{"yes", `a: {command: x, parseText: yes}`, "line 2: mcpServers.a.parseText: must be true or false, not text"},
		{"no URL", `a: {url: "http://[s3cret"}`, "line 2: mcpServers.a.url: the value is not a URL"},
		{"space in URL", `a: {url: "http://x/s3 cret"}`, "line 2: mcpServers.a.url: the value is not a URL"},
		{"no scheme", `a: {url: mcp.example.com}`, "line 2: mcpServers.a.url: the value is not a URL that starts with http:// or https://"},
		{"no host", `a: {url: "https:///mcp"}`, "line 2: mcpServers.a.url: the value is a URL without a host"},
		{"port", `a: {url: "https://x:70000/mcp"}`, "line 2: mcpServers.a.url: the value has a port that is not a number from 1 to 65535"},
		{"fragment", `a: {url: "https://x/mcp#s3cret"}`, "line 2: mcpServers.a.url: the value is a URL with a fragment (#…), which is never sent"},
		{
			"user in URL", `a: {url: "https://me:s3cret@x/mcp"}`,
			"line 2: mcpServers.a.url: the value is a URL with a user or password in it, which logs would show; a server takes them in headers, or in a credential",
		},
		{"header name", `a: {url: "http://x/", headers: {"Bearer s3cret": x}}`, "line 2: mcpServers.a.headers: the name of a header is empty, or holds spaces or other characters that no name can"},
		{"header value", `a: {url: "http://x/", headers: {K: "s3cret\r\nX: y"}}`, "line 2: mcpServers.a.headers.K: the value holds a line break or another control character, which no header can"},
		{"space around a header value", `a: {url: "http://x/", headers: {K: " s3cret"}}`, "line 2: mcpServers.a.headers.K: the value has space around it, which no header can"},
		{"header twice", `a: {url: "http://x/", headers: {X-Key: a, x-key: b}}`, "line 2: mcpServers.a.headers.x-key: is the header of line 2 again, since case does not count"},
		{"hop-by-hop header", `a: {url: "http://x/", headers: {Connection: close}}`, "line 2: mcpServers.a.headers.Connection: is a header of the connection itself, which the bridge sets; leave it out"},
		{"header of the protocol", `a: {url: "http://x/", headers: {mcp-session-id: x}}`, "line 2: mcpServers.a.headers.mcp-session-id: is a header of the connection itself, which the bridge sets; leave it out"},
		{"forward on stdio", `a: {command: x, forwardHeaders: [X-A]}`, "line 2: mcpServers.a.forwardHeaders: is for servers with a url: a process has no headers; use ${caller.header.NAME} in env, with sharing: user"},
		{"forward Authorization", `a: {url: "http://x/", forwardHeaders: [authorization]}`, `line 2: mcpServers.a.forwardHeaders[0]: "authorization" is never passed on: it says who the caller is to the bridge, which is nobody else's business`},
		{"forward cookies", `a: {url: "http://x/", forwardHeaders: [Cookie]}`, `line 2: mcpServers.a.forwardHeaders[0]: "Cookie" is never passed on: it says who the caller is to the bridge, which is nobody else's business`},
		{"forward hop-by-hop", `a: {url: "http://x/", forwardHeaders: [X-A, te]}`, `line 2: mcpServers.a.forwardHeaders[1]: "te" is a header of the connection itself, and cannot be passed on`},
		{"forward all", `a: {url: "http://x/", forwardHeaders: ["X-*"]}`, `line 2: mcpServers.a.forwardHeaders[0]: "X-*" is not the name of one header; name each`},
		{"forward no name", `a: {url: "http://x/", forwardHeaders: ["X A"]}`, `line 2: mcpServers.a.forwardHeaders[0]: "X A" is not the name of a header`},
		{"forward and set", `a: {url: "http://x/", headers: {x-a: s3cret}, forwardHeaders: [X-A]}`, "line 2: mcpServers.a.forwardHeaders[0]: is a header that line 2 sets for all callers; keep one of them"},
		{
			"credential with SSE", `a: {url: "http://x/", type: sse, credential: {clientId: x, clientSecret: s3cret}}`,
			"line 2: mcpServers.a.credential: cannot be used with type sse, where a token that was refused cannot be replaced; use headers, or http",
		},
		{
			"credential and Authorization", `a: {url: "http://x/", headers: {authorization: "${UNSET:-s3cret}"}, credential: {clientId: x, clientSecret: s3cret}}`,
			"line 2: mcpServers.a.credential: cannot stand beside an Authorization header; keep one of them",
		},
		{"credential with command", `a: {command: x, credential: {clientId: x}}`, "line 2: mcpServers.a.credential: is for servers with a url"},
		{"protocol with command", `a: {command: x, protocol: auto}`, "line 2: mcpServers.a.protocol: is for servers with a url"},
		{
			"empty credential", `a: {url: "http://x/", credential: {}}`,
			lines("line 2: mcpServers.a.credential: needs clientId", "line 2: mcpServers.a.credential: needs one of clientSecret and privateKey"),
		},
		{"credential not a mapping", `a: {url: "http://x/", credential: s3cret}`, "line 2: mcpServers.a.credential: must be a mapping, not text"},
		{"key no PEM", `a: {url: "http://x/", credential: {clientId: x, privateKey: s3cret.pem}}`, "line 2: mcpServers.a.credential.privateKey: the value is not a key in PEM form; a file is read by ${file:path}"},
		{
			"secret and algorithm", `a: {url: "http://x/", credential: {clientId: x, clientSecret: s3cret, algorithm: HS256}}`,
			lines(
				`line 2: mcpServers.a.credential.algorithm: "HS256" is not one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA`,
				"line 2: mcpServers.a.credential.algorithm: has no meaning without privateKey",
			),
		},
		{
			"unknown key of a credential", `a: {url: "http://x/", credential: {clientID: x, clientId: x, clientSecret: s3cret}}`,
			"line 2: mcpServers.a.credential.clientID: unknown key; did you mean clientId?",
		},
		{"half a certificate", `a: {url: "https://x/", tls: {cert: a.pem}}`, "line 2: mcpServers.a.tls: needs both cert and key, or none"},
		{"tls without tls", `a: {url: "http://x/", tls: {ca: a.pem}}`, "line 2: mcpServers.a.tls: has no effect with a url that starts with http://"},
		{
			"key in place of its path", "a: {url: \"https://x/\", tls: {ca: \"-----BEGIN X-----\\nczNjcmV0\\n-----END X-----\\n\"}}",
			"line 2: mcpServers.a.tls.ca: the value is a certificate or key itself; write the path of its file",
		},
		{"proxy", `a: {url: "http://x/", proxy: "ftp://u:s3cret@x"}`, "line 2: mcpServers.a.proxy: the value is not a URL that starts with http:// or https:// or socks5:// or socks5h://"},
		{"protocol", `a: {url: "http://x/", protocol: 2025-01-01}`, `line 2: mcpServers.a.protocol: "2025-01-01" is not one of auto, 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26 and 2024-11-05`},
		{"protocol of sse", `a: {url: "http://x/", type: sse, protocol: 2026-07-28}`, "line 2: mcpServers.a.protocol: has no HTTP+SSE in that version; write another, or type: http"},
		{"unknown key of tools", `a: {command: x, tools: {denny: [y]}}`, "line 2: mcpServers.a.tools.denny: unknown key; did you mean deny?"},
		{"tools as text", `a: {command: x, tools: y}`, "line 2: mcpServers.a.tools: must be a mapping, not text"},
		{"glob", `a: {command: x, tools: {deny: ["[a"]}}`, `line 2: mcpServers.a.tools.deny[0]: "[a" is not a glob: a [ without its ], or a backslash at the end`},
		{"empty glob", `a: {command: x, tools: [""]}`, `line 2: mcpServers.a.tools[0]: "" is empty`},
		{"empty disabled tool", `a: {command: x, disabledTools: [""]}`, `line 2: mcpServers.a.disabledTools[0]: "" is empty`},
		{"timeout in milliseconds", `a: {command: x, timeout: 30000}`, `line 2: mcpServers.a.timeout: "30000" is above bridge.timeouts.maxTimeout; a number is of seconds, so write 30s or 500ms to be sure`},
		{"no time", `a: {command: x, timeout: 0}`, `line 2: mcpServers.a.timeout: "0" is below 1ms`},
		{"negative", `a: {command: x, startTimeout: -1s}`, `line 2: mcpServers.a.startTimeout: "-1s" is negative`},
		{"a century", `a: {command: x, idleTimeout: 1e10}`, `line 2: mcpServers.a.idleTimeout: "1e10" is longer than a year`},
		{"boolean duration", `a: {command: x, heartbeat: false}`, "line 2: mcpServers.a.heartbeat: must be text, not true or false"},
		{"no calls", `a: {command: x, maxConcurrent: 0}`, `line 2: mcpServers.a.maxConcurrent: "0" is below 1`},
		{"fraction", `a: {command: x, maxConcurrent: 1.5}`, `line 2: mcpServers.a.maxConcurrent: "1.5" is not a whole number`},
		{"number as text", `a: {command: x, maxConcurrent: "5"}`, "line 2: mcpServers.a.maxConcurrent: must be a number, not text"},
		{"rate", `a: {command: x, rate: 10/d}`, `line 2: mcpServers.a.rate: "10/d" is not a rate: write 10/s, 100/m or 1000/h`},
		{"rate as a number", `a: {command: x, rate: 10}`, "line 2: mcpServers.a.rate: must be text, not a number"},
		{"sharing", `a: {command: x, sharing: global}`, `line 2: mcpServers.a.sharing: "global" is not one of shared, tenant and user`},
		{"caller shared", `a: {command: x, env: {U: "${caller.user}"}}`, "line 2: mcpServers.a: refers to the caller (${caller.user}), but all callers share it; write sharing: user, or tenant"},
		{"user of a tenant", `a: {command: x, cwd: "/d/${caller.user}", sharing: tenant}`, "line 2: mcpServers.a: refers to ${caller.user}, but the callers of a tenant share it; write sharing: user"},
		{"caller in args", `a: {command: x, args: ["${caller.user}"], sharing: user}`, "line 2: mcpServers.a.args[0]: refers to the caller, which only env, headers and cwd of a server can"},
		{"unknown of the caller", `a: {command: x, env: {U: "${caller.name}"}, sharing: user}`, "line 2: mcpServers.a.env.U: refers to the caller by something else than ${caller.user}, ${caller.tenant} and ${caller.header.NAME}"},
		{"credential of the caller", `a: {command: x, env: {U: "${caller.header.x-api-key}"}, sharing: user}`, "line 2: mcpServers.a.env.U: refers to the header that the caller's own credential for the bridge comes in, which is not passed on"},
		{"connection of the caller", `a: {command: x, env: {U: "${caller.header.proxy-authorization}"}, sharing: user}`, "line 2: mcpServers.a.env.U: refers to a header of one connection, which is not passed on"},
		{"NUL", `a: {command: "a\0b"}`, "line 2: control character U+0000"},
		{"label", `a: {command: x, name: "a\tb"}`, `line 2: mcpServers.a.name: "a\tb" holds control characters`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantError(t, "mcpServers:\n  "+tc.entry+"\n", tc.want)
		})
	}
}

func TestBadBridge(t *testing.T) {
	hash, other := "sha256:"+strings.Repeat("0", 64), "sha256:"+strings.Repeat("ab", 32)
	// Each is line 2 of a file.
	for _, tc := range []struct{ name, entry, want string }{
		{"unknown", `queue: {maxwait: 1s}`, "line 2: bridge.queue.maxwait: unknown key; did you mean maxWait?"},
		{"unknown, like nothing", `colour: blue`, "line 2: bridge.colour: unknown key"},
		{"not a mapping", `pool: 5`, "line 2: bridge.pool: must be a mapping, not a number"},
		{"twice", `pool: {connects: 1, connects: 2}`, "line 2: bridge.pool.connects: is here twice; first in line 2"},
		{"listen port", `listen: localhost:http`, `line 2: bridge.listen: "localhost:http" has a port that is not a number from 0 to 65535`},
		{"basePath", `basePath: bridge`, `line 2: bridge.basePath: "bridge" does not start with a slash`},
		{"basePath slash", `basePath: /bridge/`, `line 2: bridge.basePath: "/bridge/" ends with a slash`},
		{"basePath root", `basePath: /`, `line 2: bridge.basePath: "/" ends with a slash`},
		{"basePath dots", `basePath: /a/../b`, `line 2: bridge.basePath: "/a/../b" has an empty segment, or one of dots`},
		{"basePath characters", `basePath: "/a?b"`, `line 2: bridge.basePath: "/a?b" holds characters other than letters, digits and - . _ ~ /`},
		{"hosts", `hosts: ["https://x.example.com", "x:1", ""]`, lines(
			`line 2: bridge.hosts[0]: "https://x.example.com" is not a host name; write it without scheme, port and path`,
			`line 2: bridge.hosts[1]: "x:1" is not a host name; write it without scheme, port and path`,
			`line 2: bridge.hosts[2]: "" is empty`,
		)},
		{"hosts as text", `hosts: x.example.com`, "line 2: bridge.hosts: must be a list, not text"},
		{"call above max", `timeouts: {call: 11m}`, "line 2: bridge.timeouts.call: is above timeouts.maxTimeout"},
		{"max below call", `timeouts: {maxTimeout: 5s}`, "line 2: bridge.timeouts.maxTimeout: is below timeouts.call, which is 20s unless set"},
		{"cool-downs", `breaker: {cooldown: 2h, maxCooldown: 1h}`, "line 2: bridge.breaker.cooldown: is above breaker.maxCooldown"},
		{"zero", `pool: {connects: 0}`, `line 2: bridge.pool.connects: "0" is below 1`},
		{"huge", `pool: {connects: 10000000000}`, `line 2: bridge.pool.connects: "10000000000" is above 1000000000`},
		{"octal", `pool: {connects: 010}`, `line 2: bridge.pool.connects: "010" is not a whole number`},
		{"size", `limits: {requestBytes: 4M}`, `line 2: bridge.limits.requestBytes: "4M" is not a size: write 64MiB, 512KiB, 4MB or a number of bytes`},
		{"no size", `limits: {resultBytes: 0}`, `line 2: bridge.limits.resultBytes: "0" is below 1`},
		{"half a byte", `limits: {resultBytes: 1.5}`, `line 2: bridge.limits.resultBytes: "1.5" is not a whole number of bytes`},
		{"endless", `limits: {resultBytes: 1e20}`, `line 2: bridge.limits.resultBytes: "1e20" is too large`},
		{"negative size", `limits: {resultBytes: -1}`, `line 2: bridge.limits.resultBytes: "-1" is negative`},
		{"store", `artifacts: {store: "postgres://u:s3cret@x"}`, "line 2: bridge.artifacts.store: the value is not a URL that starts with redis:// or rediss://"},
		{"summary", `artifacts: {summaryChars: 2000}`, "line 2: bridge.artifacts.summaryChars: would make summaries longer than what they are for: summaryChars is above summaryAfter"},
		{"summaryAfter", `artifacts: {summaryAfter: 100}`, "line 2: bridge.artifacts.summaryAfter: would make summaries longer than what they are for: summaryChars is above summaryAfter"},
		{"type", `artifacts: {types: {"Link Page": {}}}`, `line 2: bridge.artifacts.types["Link Page"]: is not a name of a type: write words of lower-case letters, digits and dashes, joined by colons`},
		{"schema", `artifacts: {types: {a: text}}`, "line 2: bridge.artifacts.types.a: must be a JSON Schema: a mapping, or true or false, not text"},
		{"schema number", `artifacts: {types: {a: {maximum: .inf}}}`, `line 2: bridge.artifacts.types.a.maximum: ".inf" is not a number of JSON`},
		{"schema text", `artifacts: {types: {a: {b: [{c: "${UNSET}"}]}}}`, "line 2: bridge.artifacts.types.a.b[0].c: refers to ${UNSET}, which is not set in the environment; ${UNSET:-default} gives a default"},
		{"schema twice", `artifacts: {types: {a: {b: 1, b: 2}}}`, "line 2: bridge.artifacts.types.a.b: is here twice; first in line 2"},
		{"key", `auth: {keys: [{hash: s3cret}]}`, lines(
			"line 2: bridge.auth.keys[0]: needs id",
			`line 2: bridge.auth.keys[0].hash: the value is not "sha256:" and 64 hexadecimal digits, as bridge keys new prints it`,
		)},
		{"key without hash", `auth: {keys: [{id: a, key: s3cret}]}`, lines("line 2: bridge.auth.keys[0]: needs hash", "line 2: bridge.auth.keys[0].key: unknown key")},
		{"keys twice", `auth: {keys: [{id: a, hash: "` + hash + `"}, {id: a, hash: "` + other + `"}]}`, "line 2: bridge.auth.keys[1].id: is the id of another key, in line 2; give each its own, and the same user to both"},
		{"one key for two", `auth: {keys: [{id: a, hash: "` + other + `"}, {id: b, hash: "` + strings.ToUpper(other) + `"}]}`, "line 2: bridge.auth.keys[1].hash: is the hash of another key, in line 2; one key cannot be two callers"},
		{"policy", `auth: {anonymous: {allow: [files], burst: 1, concurrent: 0, timeout: 1h}}`, lines(
			`line 2: bridge.auth.anonymous.allow[0]: "files" names no tool: write handle/tool, as files/* or */delete_*`,
			"line 2: bridge.auth.anonymous.burst: has no meaning without rate",
			`line 2: bridge.auth.anonymous.concurrent: "0" is below 1`,
			`line 2: bridge.auth.anonymous.timeout: "1h" is above bridge.timeouts.maxTimeout; a number is of seconds, so write 30s or 500ms to be sure`,
		)},
		{"scope", `auth: {keys: [{id: a, hash: "` + hash + `", scopes: [root]}]}`, `line 2: bridge.auth.keys[0].scopes[0]: "root" is not a scope: write call, admin and metrics`},
		{"anonymous", `auth: {anonymous: maybe}`, "line 2: bridge.auth.anonymous: must be true or false, not text"},
		{"no rate", `auth: {anonymous: {rate: 0/m}}`, `line 2: bridge.auth.anonymous.rate: "0/m" allows nothing: the count must be at least 1`},
		{"jwt", `auth: {jwt: [{issuer: "http://id.example.com", audience: []}]}`, lines(
			`line 2: bridge.auth.jwt[0].issuer: "http://id.example.com" must be https, except on loopback`,
			"line 2: bridge.auth.jwt[0].audience: is empty, and a token for anybody must not be taken",
		)},
		{"empty jwt", `auth: {jwt: [{}]}`, lines("line 2: bridge.auth.jwt[0]: needs issuer", "line 2: bridge.auth.jwt[0]: needs audience")},
		{"issuer", `auth: {jwt: [{issuer: id.example.com, audience: a}]}`, `line 2: bridge.auth.jwt[0].issuer: "id.example.com" is not a URL that starts with https:// or http://`},
		{"origin", `cors: {origins: [app.example.com, "https://x/", "null"]}`, lines(
			`line 2: bridge.cors.origins[0]: "app.example.com" is not an origin: write https://app.example.com, in lower case and without a path, or *`,
			`line 2: bridge.cors.origins[1]: "https://x/" is not an origin: write https://app.example.com, in lower case and without a path, or *`,
			`line 2: bridge.cors.origins[2]: "null" is not an origin: write https://app.example.com, in lower case and without a path, or *`,
		)},
		{"sources", `sources: {redis: localhost}`, "line 2: bridge.sources.redis: the value is not a URL that starts with redis:// or rediss://"},
		{"admin", `admin: {stateFile: "", allowCommands: 1}`, lines(`line 2: bridge.admin.stateFile: "" is empty`, "line 2: bridge.admin.allowCommands: must be true or false, not a number")},
		{"operationIds", `operationIds: short`, `line 2: bridge.operationIds: "short" is not one of plain and mcpo`},
		{"telemetry", `telemetry: {logLevel: loud, otlp: "localhost:4317", debugListen: "0.0.0.0:6060"}`, lines(
			`line 2: bridge.telemetry.logLevel: "loud" is not a level: write debug, info, warn or error`,
			`line 2: bridge.telemetry.otlp: "localhost:4317" is not a URL that starts with http:// or https://`,
			`line 2: bridge.telemetry.debugListen: "0.0.0.0:6060" is not on loopback, and profiles are for this machine only; write 127.0.0.1 and a port`,
		)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantError(t, "bridge:\n  "+tc.entry+"\n", tc.want)
		})
	}
}

func TestBadTop(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"unknown", "mcpServer: {}\n", "line 1: mcpServer: unknown key; did you mean mcpServers?"},
		{"at the wrong place", "\nlisten: x\n", "line 2: listen: belongs under bridge:"},
		{"both names", "mcpServers: {}\nservers: {a: {command: x}}\n", "line 2: servers: is the same as mcpServers, in the words of VS Code; put all servers under one of them"},
		{"list of servers", "mcpServers:\n- name: a\n", "line 1: mcpServers: must be a mapping, not a list"},
		{"list", "- a\n", "line 1: must be a mapping, not a list"},
		{"text", "hello\n", "line 1: must be a mapping, not text"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantError(t, tc.text, tc.want) })
	}
}

// wantError reads text, and wants exactly these lines, none of which may hold
// what the tests use as a secret.
func wantError(t *testing.T, text, want string) {
	t.Helper()
	cfg, _, err := read(t, text)
	if err == nil {
		t.Fatalf("no error; got %+v", cfg)
	}
	if _, ok := errors.AsType[*config.Error](err); !ok {
		t.Errorf("error is a %T, want an *Error", err)
	}
	if got := err.Error(); got != want {
		t.Errorf("error:\n%s\nwant:\n%s", got, want)
	}
	for _, secret := range []string{"s3cret", "s3 cret"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("error shows a secret:\n%s", err)
		}
	}
}

// Settings of the other kind of server are said to have no effect.
func TestIdleKeys(t *testing.T) {
	_, warnings, err := read(t, `
mcpServers:
  local: {command: x, heartbeat: 5s}
  remote: {url: "http://x", startTimeout: 5s, idleTimeout: 0, heartbeat: 1m}
  plain: {command: x, startTimeout: 5s, idleTimeout: 0}
  own: {url: "http://x", idleTimeout: 5s, sharing: user, elicitation: true}
  asks: {command: x, elicitation: true}
  asks each: {command: x, elicitation: true, sharing: user}
`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	want := lines(
		"line 3: mcpServers.local.heartbeat: has no effect beside command",
		"line 4: mcpServers.remote.startTimeout: has no effect beside url",
		"line 4: mcpServers.remote.idleTimeout: has no effect beside url",
		"line 7: mcpServers.asks.elicitation: lets a command of the versions with a handshake ask nothing without sharing: user, since it does not say which call it asks for",
	)
	if lines(got...) != want {
		t.Errorf("warnings:\n%s\nwant:\n%s", lines(got...), want)
	}
}
