package main

import (
	"context"
	"fmt"
	"strings"
)

// inspect uses /mcp with the command line of the inspector, a client that we did not write, as a person would who looks what is there.
func inspect(ctx context.Context, s *suite, endpoint string) error {
	for _, look := range []struct {
		args []string
		want string
	}{
		{[]string{"tools/list"}, `"name": "conformance__test_simple_text"`},
		{[]string{"tools/call", "--tool-name", "conformance__test_simple_text"}, "This is a simple text response for testing."},
		{[]string{"resources/list"}, `"uri": "bridge:conformance:test://static-text"`},
		{[]string{"resources/templates/list"}, `"uriTemplate": "bridge:conformance:test://template/{id}/data"`},
		{[]string{"resources/read", "--uri", "bridge:conformance:test://static-text"}, `"text": "`},
		{[]string{"prompts/list"}, `"name": "conformance__test_simple_prompt"`},
		{[]string{"prompts/get", "--prompt-name", "conformance__test_prompt_with_arguments", "--prompt-args", "arg1=one", "arg2=two"}, "two"},
	} {
		args := append([]string{"--cli", endpoint, "--transport", "http", "--method"}, look.args...)
		out, err := s.script(ctx, "@modelcontextprotocol/inspector/clients/launcher/build/index.js", args...)
		if err != nil {
			return err
		}
		if !strings.Contains(string(out), look.want) {
			return fmt.Errorf("inspector %s does not show %q:\n%s", strings.Join(look.args, " "), look.want, out)
		}
	}
	return nil
}
