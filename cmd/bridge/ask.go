package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

// question asks one question until its answer fits, or the person wants to leave it. The
// end of the input cancels.
func (t *terminal) question(ctx context.Context, q bridge.Question) (bridge.Reply, error) {
	t.say("\nThe tool asks: %s", line(q.Message))
	if q.URL != "" {
		t.say("It wants you to visit %s", line(q.URL))
	}
	for {
		action, err := t.line(ctx, "Answer, decline or cancel? [A/d/c] ")
		if err != nil {
			return leaving(err)
		}
		switch strings.ToLower(action) {
		case "", "a", "answer", "y", "yes", "accept":
		case "d", "decline", "n", "no":
			return bridge.Reply{Action: bridge.Decline}, nil
		case "c", "cancel":
			return bridge.Reply{Action: bridge.Cancel}, nil
		default:
			continue
		}
		if q.Schema == nil {
			return bridge.Reply{Action: bridge.Accept}, nil
		}
		content, err := t.form(ctx, q.Schema)
		if err != nil {
			return leaving(err)
		}
		check, err := t.compile(q.Schema)
		if err != nil {
			return bridge.Reply{}, fmt.Errorf("the question's schema cannot be used: %w", err)
		}
		if check != nil {
			if content, err = check.Check(content); err != nil {
				t.say("That does not fit: %v", explain(err))
				continue
			}
		}
		return bridge.Reply{Action: bridge.Accept, Content: content}, nil
	}
}

// leaving is the reply of somebody who gives no more input.
func leaving(err error) (bridge.Reply, error) {
	if errors.Is(err, io.EOF) {
		return bridge.Reply{Action: bridge.Cancel}, nil
	}
	return bridge.Reply{}, err
}

// form asks for each property of the schema, and returns the object.
func (t *terminal) form(ctx context.Context, schema []byte) ([]byte, error) {
	var required []string
	_ = json.Unmarshal(raw.Get(schema, "required"), &required) // what is none requires nothing
	b := []byte{'{'}
	for m := range raw.Members(raw.Get(schema, "properties")) {
		v, err := t.fitting(ctx, m, slices.Contains(required, raw.Unquote(m.Key)))
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, m.Key...), ':'), v...)
	}
	return append(b, '}'), nil
}

// fitting asks for one value until it fits its own schema. The whole is checked afterwards.
func (t *terminal) fitting(ctx context.Context, m raw.Member, required bool) ([]byte, error) {
	check, err := t.compile(slices.Concat([]byte(`{"type":"object","properties":{`), m.Key, []byte{':'}, m.Val, []byte(`}}`)))
	if err != nil {
		check = nil // it may refer to what is elsewhere
	}
	for {
		v, err := t.field(ctx, raw.Unquote(m.Key), m.Val, required)
		if err != nil || v == nil || check == nil {
			return v, err
		}
		_, err = check.Check(slices.Concat([]byte{'{'}, m.Key, []byte{':'}, v, []byte{'}'}))
		e, ok := errors.AsType[*bridge.Error](err)
		if !ok {
			return v, nil
		}
		t.say("%s", e.Msg)
	}
}

// field asks for one value. Nothing is the default, or no value where none is required.
func (t *terminal) field(ctx context.Context, name string, schema []byte, required bool) ([]byte, error) {
	prompt := name
	if title := raw.GetString(schema, "title"); title != "" && title != name {
		prompt += " (" + title + ")"
	}
	if d := raw.GetString(schema, "description"); d != "" {
		prompt += ", " + d
	}
	if options := choices(schema); options != nil {
		prompt += ", one of " + strings.Join(options, ", ")
	}
	def := raw.Get(schema, "default")
	switch {
	case def != nil:
		prompt += " [" + string(def) + "]"
	case !required:
		prompt += " []"
	}
	for {
		text, err := t.line(ctx, line(prompt)+": ")
		if err != nil {
			return nil, err
		}
		switch {
		case text != "":
			return value(schema, text), nil
		case def != nil || !required:
			return def, nil
		}
	}
}

// choices returns what a value may be, if the schema lists it.
func choices(schema []byte) []string {
	var all []string
	for _, v := range raw.Elements(raw.Get(schema, "enum")) {
		all = append(all, textOf(v))
	}
	for _, of := range []string{"oneOf", "anyOf"} {
		for _, v := range raw.Elements(raw.Get(schema, of)) {
			if c := raw.Get(v, "const"); c != nil {
				all = append(all, textOf(c))
			}
		}
	}
	if items := raw.Get(schema, "items"); items != nil {
		return choices(items)
	}
	return all
}

func textOf(v []byte) string {
	if raw.KindOf(v) == raw.String {
		return raw.Unquote(v)
	}
	return string(v)
}

// value returns what somebody typed as JSON of the schema's type. What is no such value
// stays a string, which the schema's check refuses.
func value(schema []byte, text string) []byte {
	switch raw.GetString(schema, "type") {
	case "integer", "number":
		if raw.KindOf([]byte(text)) == raw.Number && raw.CheckAny([]byte(text)) == nil {
			return []byte(text)
		}
	case "boolean":
		switch strings.ToLower(text) {
		case "y", "yes", "true":
			return []byte("true")
		case "n", "no", "false":
			return []byte("false")
		}
	case "array":
		b := []byte{'['}
		for part := range strings.SplitSeq(text, ",") {
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(b, value(raw.Get(schema, "items"), strings.TrimSpace(part))...)
		}
		return append(b, ']')
	}
	return raw.AppendQuote(nil, text)
}

// line asks for one line.
func (t *terminal) line(ctx context.Context, prompt string) (string, error) {
	t.mu.Lock()
	fmt.Fprint(t.out, prompt)
	t.mu.Unlock()
	type typed struct {
		text string
		err  error
	}
	got := make(chan typed, 1)
	go func() { // ends with the line, or with the program
		text, err := t.in.ReadString('\n')
		if text != "" {
			err = nil
		}
		got <- typed{strings.TrimSpace(text), err}
	}()
	select {
	case l := <-got:
		return l.text, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
