package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"mcpbridge/internal/identity"
)

type keysCmd struct {
	New  keysNewCmd  `cmd:"" help:"Make a new API key: it goes to the standard output, and the entry for the configuration to the standard error."`
	Hash keysHashCmd `cmd:"" help:"Read an API key from the standard input and print its hash."`
}

type keysNewCmd struct {
	ID     string   `placeholder:"ID" default:"new" help:"Names the key in logs."`
	User   string   `placeholder:"NAME" help:"Whose key it is; the id unless given. A user who changes its key has two for a while."`
	Tenant string   `placeholder:"NAME" help:"The tenant of the user."`
	Scopes []string `placeholder:"SCOPE" enum:"call,admin,metrics" help:"What the key is for: call (unless given), admin, metrics."`
}

// Run prints the key, which nothing else knows, and the entry, in which it is only as a hash:
//
//	bridge keys new --id ci >ci.key
func (c *keysNewCmd) Run(s streams) error {
	for flag, v := range map[string]string{"id": c.ID, "user": c.User, "tenant": c.Tenant} {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("--%s has a control character; %w", flag, errUsage)
		}
	}
	if c.ID == "" {
		return fmt.Errorf("--id is empty; %w", errUsage)
	}
	key := identity.NewKey()
	digest, err := identity.DigestOf(key)
	if err != nil {
		return err
	}
	// A flow mapping with JSON's strings is both YAML and, but for the keys' quotes, JSON.
	entry := fmt.Sprintf("{id: %s, hash: %q", quoted(c.ID), digest)
	if c.User != "" {
		entry += ", user: " + quoted(c.User)
	}
	if c.Tenant != "" {
		entry += ", tenant: " + quoted(c.Tenant)
	}
	if len(c.Scopes) > 0 {
		entry += ", scopes: [" + strings.Join(c.Scopes, ", ") + "]"
	}
	if _, err := fmt.Fprintf(s.stderr, "The key is shown this once. Add to bridge.auth.keys in the configuration:\n  - %s}\n", entry); err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.stdout, key)
	return err
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always can be
	}
	return string(b)
}

type keysHashCmd struct{}

// Run takes the key from the standard input, since a command line can be seen by others.
func (*keysHashCmd) Run(s streams) error {
	line, err := bufio.NewReader(io.LimitReader(s.stdin, 4<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the key: %w", err)
	}
	digest, err := identity.DigestOf(strings.TrimRight(line, "\r\n"))
	if err != nil {
		return fmt.Errorf("the standard input has no key: %w", err)
	}
	_, err = fmt.Fprintln(s.stdout, digest)
	return err
}
