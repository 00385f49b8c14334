package raw

// A Frame is one JSON-RPC 2.0 message: the spans of its members, nil where absent.
// Which of them are there says what it is: a Method with an ID is a request,
// without one a notification; a Result or an Error is a response.
type Frame struct {
	ID, Method, Params, Result, Error []byte
}

// Response reports whether the frame answers a request.
func (f *Frame) Response() bool { return f.Method == nil && (f.Result != nil || f.Error != nil) }

// ParseFrame checks one message and finds its members, wherever they stand: many
// servers put the id behind the result. It refuses what is not one JSON object,
// and a message in which one of its own members stands twice, since readers
// disagree on what such a one means. The error is a [*SyntaxError].
func ParseFrame(b []byte) (Frame, error) {
	var f Frame
	s := scanner{b: b, depth: anyDepth}
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		return f, &SyntaxError{i, "not a JSON object"}
	}
	i = s.object(i, func(key, val span) {
		var dst *[]byte
		switch k := b[key.from:key.to]; {
		case equalKey(k, "id"):
			dst = &f.ID
		case equalKey(k, "method"):
			dst = &f.Method
		case equalKey(k, "params"):
			dst = &f.Params
		case equalKey(k, "result"):
			dst = &f.Result
		case equalKey(k, "error"):
			dst = &f.Error
		default:
			return
		}
		if *dst != nil {
			s.fail(key.from, "the same key twice")
			return
		}
		*dst = b[val.from:val.to]
	})
	if s.err == nil {
		if i = skipSpace(b, i); i < len(b) {
			s.fail(i, "data behind the value")
		}
	}
	if s.err != nil {
		return Frame{}, s.err
	}
	return f, nil
}
