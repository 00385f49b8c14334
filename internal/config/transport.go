package config

import (
	"errors"
	"strings"
)

// transportWords are what files call the transports, in lower case.
var transportWords = map[string]Transport{
	"stdio": Stdio, "local": Stdio, "process": Stdio,
	"http": HTTP, "streamable-http": HTTP, "streamable_http": HTTP, "streamablehttp": HTTP, "mcp": HTTP,
	"sse": SSE, "server-sent-events": SSE, "event-stream": SSE,
}

func parseTransport(s string) (Transport, error) {
	if t, ok := transportWords[strings.ToLower(s)]; ok {
		return t, nil
	}
	return "", errors.New("is not a transport: write stdio (or local, process), http (or streamable-http, mcp) or sse (or event-stream)")
}

// transport finds out how the server is reached, from command, url and the word
// for it, if any.
func (d *decoder) transport(o *object, s *Server) {
	command, url := o.get("command").present(), o.get("url").present()
	switch {
	case command && url:
		o.d.problem(o.line, o.path, "has both command and url; a server has one of them")
	case !command && !url:
		o.d.problem(o.line, o.path, "has neither command nor url; a server needs one of them")
	case command:
		s.Transport = Stdio
	default:
		s.Transport = HTTP
	}
	var said Transport
	for _, key := range []string{"type", "transport"} {
		var word Transport
		set(o, key, &word, parseTransport, textKinds...)
		switch {
		case word == "":
			continue
		case said != "" && word != said:
			o.get(key).problem("contradicts type; write one of them")
			continue
		}
		said = word
		if s.Transport == "" {
			continue
		}
		switch {
		case word != Stdio && s.Transport == Stdio:
			o.get(key).problem("names a transport for servers with a url, but there is a command; leave it out")
		case word == Stdio && s.Transport != Stdio:
			o.get(key).problem("names a transport for servers with a command, but there is a url; leave it out")
		default:
			s.Transport = word
		}
	}
}
