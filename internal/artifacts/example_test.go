package artifacts_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
)

// A tool's result is kept; then one field of it is read, a part of it, and its summary.
func Example() {
	ctx := context.Background()
	keeper := artifacts.New(artifacts.Options{Store: artifacts.NewMemory(256 << 20), Summaries: 10000})
	caller := bridge.Caller{ID: "ci", User: "ann"}

	result, err := bridge.ParseResult([]byte(`{"structuredContent": {"hits": [{"title": "One", "price": 1.10}, {"title": "Two"}], "page": "` + strings.Repeat("lorem ipsum ", 100) + `"}}`))
	if err != nil {
		panic(err)
	}
	kept := keeper.Keep(ctx, caller, &bridge.Tool{Handle: "shop", Name: "search"}, result, &bridge.Timing{})

	artifact, err := keeper.Open(ctx, caller, "«artifact:"+kept.Ref+"»")
	if err != nil {
		panic(err)
	}
	price, err := artifact.Data("/hits/0/price")
	if err != nil {
		panic(err)
	}
	if _, err := price.WriteTo(os.Stdout); err != nil {
		panic(err)
	}
	fmt.Println()

	page, err := artifact.Data("/page")
	if err != nil {
		panic(err)
	}
	part, err := page.Slice(6, 5)
	if err != nil {
		panic(err)
	}
	if err := part.Text(os.Stdout); err != nil {
		panic(err)
	}
	fmt.Println(" of", part.Total, "characters; the next part begins at", part.Next)

	hits, err := artifact.Data("/hits/1")
	if err != nil {
		panic(err)
	}
	if err := hits.Summarize(os.Stdout); err != nil {
		panic(err)
	}
	fmt.Println()

	_, err = artifact.Data("/hits/0/cost")
	fmt.Println(err)
	// Output:
	// 1.10
	// ipsum of 1200 characters; the next part begins at 11
	// {"title": "Two"}
	// artifacts.lookup: The pointer resolves only up to "/hits/0", where there is an object without such a key; the keys that it has are listed.
}
