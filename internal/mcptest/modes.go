package mcptest

// The modes that speak over stdio. Those marked + serve the tools of [OK] too.
const (
	// OK serves, without any fault, tools that let a test see and control what
	// goes over the wire; each is described in kit.go.
	OK = "ok"
	// Banner + prints a banner before it serves, and noise between its frames and on stderr.
	Banner = "banner"
	// ExitAtOnce exits before it reads anything. Arguments: its status (3), its last words on stderr ("no licence found").
	ExitAtOnce = "exit-at-once"
	// NeverAnswerInitialize reads and never writes. It ends when its stdin does.
	NeverAnswerInitialize = "never-answer-initialize"
	// Stubborn + ignores SIGTERM, SIGINT, SIGHUP and, with a line on stdout, the end of its stdin: only SIGKILL ends it.
	Stubborn = "stubborn"
	// StopsReading does the handshake and the lists, then never reads again.
	StopsReading = "stops-reading"
	// Pauses + answers the tool pause, then does not read until it gets SIGUSR1.
	Pauses = "pauses"
	// NeverAnswerCall + answers everything but tools/call.
	NeverAnswerCall = "never-answer-call"
	// DieInCall + exits with status 7 in a call of the tools die, die_idempotent, die_read_only and
	// die_half (which writes half an answer first). Argument: a file, to which each call appends a line
	// before; only the call that finds it empty dies then, and the others answer how often they ran.
	DieInCall = "die-in-call"
	// Pages + lists its tools tool_0, tool_1, … in pages. Arguments: how many tools (25), how many on a page (10).
	Pages = "pages"
	// PagesLoop + gives every page the same cursor.
	PagesLoop = "pages-loop"
	// PagesEndless + gives every page a new cursor, for ever.
	PagesEndless = "pages-endless"
	// NoTools offers no tools capability and answers tools/list with -32601.
	NoTools = "no-tools"
	// BadSchema serves six tools, tool_1 to tool_6; the schema of tool_4 is {"type":"string"}.
	BadSchema = "bad-schema"
	// BadDescription serves six tools, tool_1 to tool_6; the description of tool_4 is the number 5.
	BadDescription = "bad-description"
	// BadTools serves tool_1 to tool_3 between entries that are no usable tools, and tool_1 twice.
	BadTools = "bad-tools"
	// Exact + serves results that any decoding would change; see results.go.
	Exact = "exact"
	// Results + serves one tool for each kind of result; see results.go.
	Results = "results"
	// IDLast + writes every answer's id behind its result.
	IDLast = "id-last"
	// Schemas serves a tool for each schema of schemas.go; each answers its arguments' exact bytes as text.
	// With the arguments "bad" and an address, for each of [BadSchemaTools].
	Schemas = "schemas"
	// Names serves a tool for each of [ToolNames]; each answers its own name as text.
	Names = "names"
	// Modern + speaks 2026-07-28 only: it refuses initialize, answers server/discover, and wants _meta in each
	// request. With the argument "exit" it ends after it has refused initialize.
	Modern = "modern"
	// NoPing + answers ping with -32601.
	NoPing = "no-ping"
	// Offers + has resources, templates, prompts and completion, some of them bad; see offers.go.
	Offers = "offers"
	// Asks is the SDK's server, of the versions with a handshake, with tools that ask (ask, ask_both, ask_again, ask_page,
	// ask_model), put a call off (busy), report what they do (work, which release lets go on) and never answer (hang, which hung tells of). So
	// do its prompts (greet, busy), its resources (ask:name, ask:busy) and its completion. With the argument "modern" it speaks 2026-07-28 only.
	Asks = "asks"
)

// The modes that listen for HTTP. They print the URL of their MCP endpoint as
// the first line on stdout; run them with [Start].
const (
	// HTTPOK is the SDK's Streamable HTTP handler with the tools echo, structured, fail, header and slow.
	// Arguments: "json" answers in JSON and not in events, "stateless" keeps no sessions and speaks 2026-07-28 too.
	HTTPOK = "http-ok"
	// HTTPRaw is a stdio mode over Streamable HTTP, byte by byte, with tools besides that break the transport:
	// http_status, http_type, http_drop, http_drop_stream, http_expire. Arguments: the mode ([OK]), then
	// "json" answers in JSON and drops notifications, "no-get" refuses the GET stream, "no-session" has no session ids.
	HTTPRaw = "http-raw"
	// SSEOK is the SDK's handler of the deprecated HTTP+SSE transport, with the tools of HTTPOK.
	SSEOK = "sse-ok"
	// HTTPHang takes every request and answers none.
	HTTPHang = "http-hang"
	// HTTP401 answers 401 with a challenge to everything.
	HTTP401 = "http-401"
	// HTTP502 answers 502 with a page to everything, as a proxy does.
	HTTP502 = "http-502"
	// HTTPNeed is HTTPOK for requests with a header, 401 for others. Arguments: the header's name and value, then those of HTTPOK.
	HTTPNeed = "http-need"
	// HTTPAsks is Asks over Streamable HTTP. With the argument "stateless" it keeps no sessions and speaks 2026-07-28 too.
	HTTPAsks = "http-asks"
)

// servers make what speaks MCP by hand, on stdio or, under [HTTPRaw], over HTTP.
var servers = map[string]func(args []string) (*server, error){ // :: mode -> its server
	OK:              plain,
	Banner:          banner,
	Stubborn:        stubborn,
	StopsReading:    stopsReading,
	Pauses:          pauses,
	NeverAnswerCall: neverAnswerCall,
	DieInCall:       dieInCall,
	Pages:           pages,
	PagesLoop:       pagesLoop,
	PagesEndless:    pagesEndless,
	NoTools:         noTools,
	BadSchema:       badSchema,
	BadDescription:  badDescription,
	BadTools:        badTools,
	Exact:           exact,
	Results:         results,
	IDLast:          idLast,
	Schemas:         schemas,
	Names:           names,
	Modern:          modern,
	NoPing:          noPing,
	Offers:          offers,
}

// programs are the other modes: whole programs.
var programs = map[string]func(args []string) error{ // :: mode -> what its process does
	ExitAtOnce:            exitAtOnce,
	NeverAnswerInitialize: neverAnswerInitialize,
	Asks:                  asks,
	HTTPAsks:              listening("/mcp", httpAsks),
	HTTPOK:                listening("/mcp", httpOK),
	HTTPRaw:               listening("/mcp", httpRaw),
	SSEOK:                 listening("/sse", sseOK),
	HTTPHang:              listening("/mcp", httpHang),
	HTTP401:               listening("/mcp", http401),
	HTTP502:               listening("/mcp", http502),
	HTTPNeed:              listening("/mcp", httpNeed),
	OAuth:                 listening("/mcp", oauthServer),
	OIDC:                  listening("", oidcIssuer),
}

// program returns what a process of the mode does.
func program(mode string) (func(args []string) error, bool) {
	if newServer, ok := servers[mode]; ok {
		return func(args []string) error {
			s, err := newServer(args)
			if err != nil {
				return err
			}
			return s.serveStdio()
		}, true
	}
	p, ok := programs[mode]
	return p, ok
}
