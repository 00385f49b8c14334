package remote

// An idScanner finds the id of a JSON-RPC response that is too large to keep,
// wherever in it the id stands, while its bytes go by. It looks at the members
// of the outermost object only and takes the message to be valid JSON: the worst that
// others lead to is that nobody is told, and the call ends by its clock.
type idScanner struct {
	depth    int
	inString bool
	escaped  bool
	key      bool   // the next string on the outermost level is a key
	reading  bool   // the current token is kept
	token    []byte // at most maxToken of it
	name     string // the last key
	id       string
	request  bool // there is a method: its id is not one of ours
}

const maxToken = 64

func (s *idScanner) feed(b []byte) {
	for _, c := range b {
		if s.inString {
			s.keep(c)
			switch {
			case s.escaped:
				s.escaped = false
			case c == '\\':
				s.escaped = true
			case c == '"':
				s.inString = false
				if s.depth == 1 {
					s.end()
				}
			}
			continue
		}
		switch c {
		case '"':
			s.inString = true
			if s.depth == 1 {
				s.reading, s.token = true, s.token[:0]
				s.keep(c)
			}
		case '{', '[':
			s.depth++
			s.key = s.depth == 1
		case '}', ']':
			if s.depth == 1 {
				s.end()
			}
			s.depth--
		case ',':
			if s.depth == 1 {
				s.end()
				s.key = true
			}
		case ':', ' ', '\t', '\r', '\n':
		default:
			if s.depth == 1 {
				s.reading = true
				s.keep(c)
			}
		}
	}
}

func (s *idScanner) keep(c byte) {
	if s.reading && len(s.token) < maxToken {
		s.token = append(s.token, c)
	}
}

// end takes the token that has just ended.
func (s *idScanner) end() {
	if !s.reading {
		return
	}
	text := string(s.token)
	s.reading, s.token = false, s.token[:0]
	if s.key {
		s.key = false
		s.name = text
		s.request = s.request || text == `"method"`
		return
	}
	if s.name == `"id"` {
		s.id = text
	}
	s.name = ""
}

// response returns the id of the response that went by, without quotes; empty if it was none.
func (s *idScanner) response() string {
	if s.request {
		return ""
	}
	if n := len(s.id); n > 1 && s.id[0] == '"' {
		return s.id[1 : n-1]
	}
	return s.id
}
