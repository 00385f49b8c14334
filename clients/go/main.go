// Command clients calls a live bridge with the clients that oapi-codegen made of
// its OpenAPI 3.0 documents.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"mcpbridge/clients/gen/client"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		cancel()
		os.Exit(1)
	}
	fmt.Println("all calls are as they should be")
}

func run(ctx context.Context) error {
	c, err := client.NewClientWithResponses(os.Getenv("BRIDGE"))
	if err != nil {
		return err
	}
	return errors.Join(callDemo(ctx, c), callServers(ctx, c), callInVain(ctx, c), callShapes(ctx))
}

func callDemo(ctx context.Context, c *client.ClientWithResponses) error {
	added, err := c.DemoAddWithResponse(ctx, client.DemoAddJSONRequestBody{A: 0.1, B: 0.2})
	if err != nil {
		return err
	}
	if added.JSON200 == nil {
		return unexpected("add", added.StatusCode(), added.Body)
	}
	greeted, err := c.DemoGreetWithResponse(ctx, client.DemoGreetJSONRequestBody{Name: "Ada", Language: new(client.De)})
	if err != nil {
		return err
	}
	// Variables, because Go adds constants exactly.
	a, b := 0.1, 0.2
	return errors.Join(
		equal("add", added.JSON200.Sum, a+b),
		text("greet", greeted.JSON200, "Guten Tag, Ada!"),
	)
}

func callServers(ctx context.Context, c *client.ClientWithResponses) error {
	echoed, err := c.EverythingEchoWithResponse(ctx, client.EverythingEchoJSONRequestBody{Message: "grüße"})
	if err != nil {
		return err
	}
	summed, err := c.EverythingGetSumWithResponse(ctx, client.EverythingGetSumJSONRequestBody{A: 1, B: 2})
	if err != nil {
		return err
	}
	hello := filepath.Join(os.Getenv("FILES"), "hello.txt")
	read, err := c.FilesReadTextFileWithResponse(ctx, client.FilesReadTextFileJSONRequestBody{Path: hello, Head: new(1.0)})
	if err != nil {
		return err
	}
	if read.JSON200 == nil {
		return unexpected("read_text_file", read.StatusCode(), read.Body)
	}
	graph, err := c.MemoryReadGraphWithResponse(ctx)
	if err != nil {
		return err
	}
	if graph.JSON200 == nil {
		return unexpected("read_graph", graph.StatusCode(), graph.Body)
	}
	return errors.Join(
		text("echo", echoed.JSON200, "Echo: grüße"),
		text("get-sum", summed.JSON200, "The sum of 1 and 2 is 3."),
		equal("read_text_file", read.JSON200.Content, "first"),
		equal("read_graph", len(graph.JSON200.Entities), 0),
	)
}

// callInVain sends wrong arguments, and calls a tool that fails.
func callInVain(ctx context.Context, c *client.ClientWithResponses) error {
	refused, err := c.DemoGreetWithResponse(ctx, client.DemoGreetJSONRequestBody{Name: ""})
	if err != nil {
		return err
	}
	failed, err := c.DemoFailWithResponse(ctx, client.DemoFailJSONRequestBody{})
	if err != nil {
		return err
	}
	if refused.ApplicationproblemJSON422 == nil || refused.ApplicationproblemJSON422.Errors == nil {
		return unexpected("greet", refused.StatusCode(), refused.Body)
	}
	if failed.ApplicationproblemJSON422 == nil || failed.ApplicationproblemJSON422.Content == nil {
		return unexpected("fail", failed.StatusCode(), failed.Body)
	}
	return errors.Join(
		equal("greet", refused.ApplicationproblemJSON422.Code, "invalid-arguments"),
		equal("greet", (*refused.ApplicationproblemJSON422.Errors)[0].Pointer, "/name"),
		equal("fail", failed.ApplicationproblemJSON422.Code, "tool-error"),
		text("fail", &client.Content{Content: *failed.ApplicationproblemJSON422.Content}, "disk full"),
	)
}

// text fails unless the first block of what a tool returned is this text.
func text(tool string, got *client.Content, want string) error {
	if got == nil || len(got.Content) == 0 || got.Content[0].Text == nil {
		return fmt.Errorf("%s: no text in %v, want %q", tool, got, want)
	}
	return equal(tool, *got.Content[0].Text, want)
}

func equal[T comparable](tool string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: got %v, want %v", tool, got, want)
	}
	return nil
}

func unexpected(tool string, status int, body []byte) error {
	return fmt.Errorf("%s: unexpected answer, status %d: %s", tool, status, body)
}
