package main

import (
	"context"
	"fmt"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/openapi"
	"mcpbridge/internal/raw"
)

// longDocument measures the OpenAPI document of many tools: how long it takes until a changed one is
// served, and how it is served.
func (b *bench) longDocument(ctx context.Context) error {
	compile, render, err := b.rendering()
	if err != nil {
		return err
	}
	s, err := b.startBridge(ctx, nameB, setup{tools: b.tools})
	if err != nil {
		return err
	}
	defer s.stop()
	const path = "/openapi.json"
	fetch := get(s.addr, path, s.header)
	first, body, err := once(ctx, fetch)
	if err == nil {
		err = first.success()
	}
	if err != nil {
		return err
	}
	own, _ := s.pids()
	var changes, work []float64
	etag := first.etag
	for range b.rounds {
		began, before := time.Now(), cpu(own)
		if a, _, err := once(ctx, s.call("change", "{}")); err != nil || a.success() != nil {
			return fmt.Errorf("changing the list: %w", err)
		}
		for {
			a, _, err := once(ctx, get(s.addr, path, s.header+"If-None-Match: "+etag+"\r\n"))
			if err != nil {
				return err
			}
			if a.status == 200 {
				etag = a.etag
				break
			}
			if time.Since(began) > 30*time.Second {
				return fmt.Errorf("the document does not change")
			}
			time.Sleep(5 * time.Millisecond)
		}
		changes = append(changes, time.Since(began).Seconds())
		work = append(work, (cpu(own) - before).Seconds())
	}
	plain, err := b.bare().start(ctx)
	if err != nil {
		return err
	}
	defer plain.stop()
	static := get(plain.addr, fmt.Sprintf("/static?size=%d", len(body)), "")
	kept := get(s.addr, path, s.header+"If-None-Match: "+etag+"\r\n")
	var whole, same, file []float64
	for range b.rounds {
		for _, m := range []struct {
			req request
			to  *[]float64
		}{{fetch, &whole}, {static, &file}, {kept, &same}} {
			r := repeat(ctx, m.req, 32, b.span)
			if r.failed != nil {
				return r.failed
			}
			*m.to = append(*m.to, r.rate())
		}
	}
	changed := spreadAll(changes)
	b.figures.render = spreadAll(render).median
	b.figures.served = spreadAll(whole).median / spreadAll(file).median
	b.sections = append(b.sections, section{
		title: fmt.Sprintf("The document of %d tools", b.tools), head: []string{"", "", "lowest to highest"},
		rows: [][]string{
			{"its size", bytesText(int64(len(body))), ""},
			{"compiling the schemas of its tools, none of which is known", secondsText(spreadAll(compile).median), between(compile, secondsText)},
			{"making the document", secondsText(spreadAll(render).median), between(render, secondsText)},
			{"from a server's changed list to the new document, all in all", secondsText(changed.median), between(changes, secondsText)},
			{"CPU time of the bridge for that", secondsText(spreadAll(work).median), between(work, secondsText)},
			{"served a second, 32 connections", number(spreadAll(whole).median), between(whole, number)},
			{"bytes of that length from a bare net/http handler", number(spreadAll(file).median), between(file, number)},
			{"304 a second, 32 connections", number(spreadAll(same).median), between(same, number)},
		},
	})
	return nil
}

func between(vs []float64, text func(float64) string) string {
	s := spreadAll(vs)
	return text(s.low) + " to " + text(s.high)
}

// rendering measures in this process what the bridge does off the path of requests when a list
// has changed: compile the schemas of its tools and render the document.
func (b *bench) rendering() (compile, render []float64, err error) {
	for round := range b.few {
		server := &bridge.Server{Handle: "echo", State: bridge.Ready, Target: &bridge.Target{Handle: "echo"}}
		began := time.Now()
		schemas, documents := openapi.NewSchemas(nil), openapi.New(openapi.Options{})
		var tools []*bridge.Tool
		for _, t := range raw.Elements(raw.Get(newEcho(b.tools).list(), "tools")) {
			tool := &bridge.Tool{
				Handle: "echo", Name: raw.GetString(t, "name"), Description: raw.GetString(t, "description"), Raw: t, Input: raw.Get(t, "inputSchema"), Target: server.Target,
			}
			if err := schemas.Compile(tool); err != nil {
				return nil, nil, err
			}
			tools = append(tools, tool)
		}
		compile = append(compile, time.Since(began).Seconds())
		server.SetTools(tools)
		began = time.Now()
		documents.Prepare(bridge.NewSnapshot(uint64(round), true, []*bridge.Server{server}))
		render = append(render, time.Since(began).Seconds())
	}
	return compile, render, nil
}
