package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	maxSecretBytes    = 1 << 20
	maxReferenceDepth = 8
)

// An expander replaces the references in one text:
//
//	${NAME}            the environment variable
//	${env:NAME}        the same, as VS Code and Cursor write it
//	${NAME:-default}   the default if it is unset or empty; may hold references
//	${file:path}       the file's text, without one trailing newline
//	${caller.user}     kept, to be resolved for each caller
//	$${                a plain ${
//
// It works on decoded text, so that no value can change the structure of the
// file, and what it has put in is never looked at again.
type expander struct {
	getenv  func(string) string // nil: only references to the caller are seen
	dir     string
	callers bool // whether references to the caller may be used here

	parts    []part
	expanded bool // something came from the environment or a file
	files    []string
	problems []string
}

func (e *expander) literal(text string) {
	if text == "" {
		return
	}
	if n := len(e.parts); n > 0 && e.parts[n-1].caller == "" {
		e.parts[n-1].text += text
		return
	}
	e.parts = append(e.parts, part{text: text})
}

func (e *expander) bad(format string, args ...any) {
	e.problems = append(e.problems, fmt.Sprintf(format, args...))
}

func (e *expander) expand(s string, depth int) {
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			e.literal(s)
			return
		}
		if i > 0 && s[i-1] == '$' {
			e.literal(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		e.literal(s[:i])
		body, rest, ok := cutReference(s[i+2:])
		if !ok {
			e.bad("has a ${ without its }; write $${ for a plain ${")
			return
		}
		e.reference(body, depth)
		s = rest
	}
}

// cutReference splits after the brace that closes a reference whose text
// starts at s, minding references inside it.
func cutReference(s string) (body, rest string, ok bool) {
	open := 1
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "${"):
			open++
			i++
		case s[i] == '}':
			if open--; open == 0 {
				return s[:i], s[i+1:], true
			}
		}
	}
	return "", "", false
}

func (e *expander) reference(body string, depth int) {
	if ref, ok := strings.CutPrefix(body, "caller."); ok {
		e.caller(ref)
		return
	}
	if e.getenv == nil {
		e.literal("${" + body + "}")
		return
	}
	if depth == maxReferenceDepth {
		e.bad("has references inside references more than %d deep", maxReferenceDepth)
		return
	}
	e.expanded = true
	if path, ok := strings.CutPrefix(body, "file:"); ok {
		e.file(path, depth)
		return
	}
	name, fallback, hasFallback := strings.Cut(strings.TrimPrefix(body, "env:"), ":-")
	switch {
	case strings.HasPrefix(body, "input:"):
		e.bad("refers to an input that an editor would ask for; use ${NAME} and the environment")
	case !isEnvName(name):
		// What stands there may be part of a password, so it is not repeated.
		e.bad("has a ${…} that is none of ${NAME}, ${NAME:-default} and ${file:path}; write $${ for a plain ${")
	default:
		switch value := e.getenv(name); {
		case value != "":
			e.literal(value)
		case hasFallback:
			e.expand(fallback, depth+1)
		default:
			e.bad("refers to ${%s}, which is not set in the environment; ${%s:-default} gives a default", name, name)
		}
	}
}

func (e *expander) caller(ref string) {
	name, isHeader := strings.CutPrefix(ref, "header.")
	switch {
	case !e.callers:
		e.bad("refers to the caller, which only env, headers and cwd of a server can")
	case ref == "user", ref == "tenant":
		e.parts = append(e.parts, part{caller: ref})
	case !isHeader || !isToken(name):
		e.bad("refers to the caller by something else than ${caller.user}, ${caller.tenant} and ${caller.header.NAME}")
	case bridgeCredential[canonicalHeader(name)]:
		e.bad("refers to the header that the caller's own credential for the bridge comes in, which is not passed on")
	case hopByHop[canonicalHeader(name)]:
		e.bad("refers to a header of one connection, which is not passed on")
	default:
		e.parts = append(e.parts, part{caller: "header." + canonicalHeader(name)})
	}
}

// file puts in a file's text. Messages name the path as it is written, since
// the path itself may come from the environment.
func (e *expander) file(written string, depth int) {
	at := expander{getenv: e.getenv, dir: e.dir}
	at.expand(written, depth+1)
	e.files = append(e.files, at.files...)
	if len(at.problems) > 0 {
		e.problems = append(e.problems, at.problems...)
		return
	}
	path := Value{parts: at.parts}.Text()
	if path == "" {
		e.bad("has a ${file:} without a path")
		return
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(e.dir, path)
	}
	e.files = append(e.files, path)
	text, err := readSecret(path)
	if err != nil {
		e.bad("cannot read ${file:%s}: %v", written, err)
		return
	}
	e.literal(text)
}

func readSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		// Opening a pipe could wait for ever.
		return "", errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", withoutPath(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	if err != nil {
		return "", withoutPath(err)
	}
	if len(data) > maxSecretBytes {
		return "", errors.New("larger than 1 MiB")
	}
	text := strings.TrimSuffix(string(data), "\n")
	return strings.TrimSuffix(text, "\r"), nil
}

func withoutPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

func isEnvName(s string) bool {
	for i, c := range []byte(s) {
		switch {
		case c == '_', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case c >= '0' && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return s != ""
}
