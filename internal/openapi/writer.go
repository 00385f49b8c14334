package openapi

import "mcpbridge/internal/raw"

// A writer appends JSON. It sets commas itself; its user opens and closes.
type writer struct{ b []byte }

// comma separates what comes next from what stands before it.
func (w *writer) comma() {
	if n := len(w.b); n > 0 {
		switch w.b[n-1] {
		case '{', '[', ':', ',':
		default:
			w.b = append(w.b, ',')
		}
	}
}

func (w *writer) key(k string) *writer {
	w.comma()
	w.b = append(raw.AppendQuote(w.b, k), ':')
	return w
}

func (w *writer) open(c byte) *writer {
	w.comma()
	w.b = append(w.b, c)
	return w
}

func (w *writer) close(c byte) *writer {
	w.b = append(w.b, c)
	return w
}

func (w *writer) str(s string) *writer {
	w.comma()
	w.b = raw.AppendQuote(w.b, s)
	return w
}

// raw appends JSON as it is: a value, or members of the open object.
func (w *writer) raw(s string) *writer {
	w.comma()
	w.b = append(w.b, s...)
	return w
}

func (w *writer) bytes(b []byte) *writer {
	if len(b) > 0 {
		w.comma()
		w.b = append(w.b, b...)
	}
	return w
}

// text writes a member that is a string, unless it is empty: a document has no empty texts.
func (w *writer) text(k, s string) *writer {
	if s != "" {
		w.key(k).str(s)
	}
	return w
}

func (w *writer) flag(k string, v *bool) *writer {
	switch {
	case v == nil:
	case *v:
		w.key(k).raw("true")
	default:
		w.key(k).raw("false")
	}
	return w
}

// reference writes a member that refers to a component.
func (w *writer) reference(k, kind, name string) *writer {
	return w.key(k).open('{').text("$ref", "#/components/"+kind+"/"+name).close('}')
}
