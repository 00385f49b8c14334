package bridge

import (
	"bytes"
	"fmt"

	"mcpbridge/internal/raw"
)

// nothing are the arguments of what has none.
type nothing struct{}

// Check implements [Checker].
func (nothing) Check([]byte) ([]byte, error) { return nil, nil }

// Check implements [Checker]: the arguments of a prompt are texts, and those that it requires must be there.
func (p *Prompt) Check(doc []byte) ([]byte, error) {
	var bad problems
	missing := map[string]bool{}
	for _, name := range p.Required {
		missing[name] = true
	}
	for m := range raw.Members(doc) {
		delete(missing, m.Name())
		if raw.KindOf(m.Val) != raw.String {
			bad.add(raw.AppendToken("", m.Name()), "must be a string: the arguments of prompts are texts")
		}
	}
	for _, name := range p.Required {
		if missing[name] {
			bad.add("", fmt.Sprintf("the argument %q is required", name))
		}
	}
	return doc, bad.err(fmt.Sprintf("The prompt %q cannot be made of these arguments", p.Name))
}

// completion checks the params of a completion, and takes off their braces.
type completion struct{}

// Check implements [Checker]. What is wrong inside the members is for the server to say.
func (completion) Check(doc []byte) ([]byte, error) {
	var bad problems
	for m := range raw.Members(doc) {
		switch name := m.Name(); name {
		case "ref", "argument":
		case "context":
			if raw.KindOf(m.Val) != raw.Object {
				bad.add("/context", "must be an object")
			}
		default: // _meta for one is the bridge's own
			bad.add(raw.AppendToken("", name), "is unknown: a completion takes ref, argument and context")
		}
	}
	arg := raw.Get(doc, "argument")
	for _, name := range []string{"name", "value"} {
		if raw.KindOf(raw.Get(arg, name)) != raw.String {
			bad.add("/argument", fmt.Sprintf("must be an object with the text %q", name))
		}
	}
	return doc[bytes.IndexByte(doc, '{')+1 : bytes.LastIndexByte(doc, '}')], bad.err("This is nothing to complete")
}

// name finds out what a completion is about, which only its body says.
func (b *Bridge) name(c *Call) error {
	if c.Method != Complete {
		return nil
	}
	if _, err := b.strict(c.Args); err != nil {
		return err
	}
	ref := raw.Get(c.Args, "ref")
	switch raw.GetString(ref, "type") {
	case "ref/prompt":
		c.Tool = raw.GetString(ref, "name")
	case "ref/resource":
		c.Tool = raw.GetString(ref, "uri")
	}
	var bad problems
	if c.Tool == "" {
		bad.add("/ref", `must be {"type": "ref/prompt", "name": …} or {"type": "ref/resource", "uri": …}`)
	}
	return bad.err("This is nothing to complete")
}

// problems are what is wrong with arguments that have no schema.
type problems []map[string]string

func (p *problems) add(pointer, message string) {
	*p = append(*p, map[string]string{"pointer": pointer, "message": message})
}

func (p *problems) err(msg string) error {
	if len(*p) == 0 {
		return nil
	}
	first := (*p)[0]
	where := ""
	if first["pointer"] != "" {
		where = first["pointer"] + " "
	}
	return &Error{
		Kind: InvalidArguments, Op: "bridge.check", Msg: FirstChars(fmt.Sprintf("%s: %s%s.", msg, where, first["message"]), 500),
		Members: map[string]any{"errors": (*p)[:min(len(*p), 20)], "count": len(*p)},
	}
}
