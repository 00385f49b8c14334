package stdio

// A skim runs over a frame that cannot be kept, or is not JSON, and finds its
// id by depth: it may stand anywhere, most often behind the result. It takes the frame in
// pieces and keeps a few bytes of it.
type skim struct {
	depth  int
	str    bool // within a string
	esc    bool // behind a backslash in it
	value  bool // behind the colon of a member of the frame
	broken bool // it has closed more than it opened, or has two ids
	method bool // it has a method: it answers nothing
	key    []byte
	id     []byte // the value of the last member called id
	ids    int
	size   int    // of the frame
	head   []byte // the beginning of it, for the log
}

// tokenBytes bounds a key or an id that is kept; ours are shorter.
const tokenBytes = 32

// feed takes the next piece.
func (s *skim) feed(b []byte) {
	s.size += len(b)
	if n := headBytes - len(s.head); n > 0 {
		s.head = append(s.head, b[:min(n, len(b))]...)
	}
	for i := 0; i < len(b); i++ {
		if s.str && !s.esc && !s.keeps() {
			// Most of what is too large lies in strings.
			if i += stringRun(b[i:]); i == len(b) {
				return
			}
		}
		c := b[i]
		if s.str {
			switch {
			case s.esc:
				s.esc = false
			case c == '\\':
				s.esc = true
			case c == '"':
				s.str = false
			}
			s.keep(c)
			continue
		}
		switch c {
		case '"':
			s.str = true
			s.keep(c)
		case '{', '[':
			s.keep(c) // so that an id of several parts is none of ours
			s.depth++
		case '}', ']':
			if s.depth--; s.depth < 0 {
				s.broken = true
			}
		case ':':
			if s.depth == 1 {
				s.colon()
			}
		case ',':
			if s.depth == 1 {
				s.value, s.key = false, s.key[:0]
			}
		case ' ', '\t', '\r', '\n':
		default:
			s.keep(c)
		}
	}
}

// keeps reports whether what is read is a key of the frame itself, or its id.
func (s *skim) keeps() bool { return s.depth == 1 && (!s.value || string(s.key) == `"id"`) }

// keep notes a byte of either.
func (s *skim) keep(c byte) {
	switch {
	case !s.keeps():
	case !s.value:
		if len(s.key) < tokenBytes {
			s.key = append(s.key, c)
		}
	default:
		if len(s.id) < tokenBytes {
			s.id = append(s.id, c)
		}
	}
}

func (s *skim) colon() {
	s.value = true
	switch string(s.key) {
	case `"id"`:
		s.ids++
		s.id = s.id[:0]
	case `"method"`:
		s.method = true
	}
}

// answers returns the id of the request that the frame answers, as the frame has it, or nil.
func (s *skim) answers() []byte {
	if s.broken || s.method || s.ids != 1 {
		return nil
	}
	return s.id
}

// stringRun returns how many bytes of b stand before the first that matters in a string.
func stringRun(b []byte) int {
	for i, c := range b {
		if c == '"' || c == '\\' {
			return i
		}
	}
	return len(b)
}
