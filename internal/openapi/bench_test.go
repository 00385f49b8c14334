package openapi

import (
	"fmt"
	"strings"
	"testing"

	"mcpbridge/internal/bridge"
)

// bigSchema has about 4 KB.
func bigSchema() string {
	var b strings.Builder
	for i := range 24 {
		fmt.Fprintf(&b, `"property_%02d":{"type":"string","description":"%s","minLength":1,"maxLength":100},`, i, strings.Repeat("words ", 12))
	}
	return props(b.String()+`"who":{"$ref":"#/$defs/Who"}`, `"required":["property_00"]`,
		`"$defs":{"Who":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}}}}`)
}

func manyTools(b *testing.B, n int) *bridge.Snapshot {
	s := NewSchemas(nil)
	var servers []*bridge.Server
	for i := range n / 20 {
		srv := server(fmt.Sprintf("server%d", i))
		for j := range 20 {
			t := &bridge.Tool{Handle: srv.Handle, Name: fmt.Sprintf("tool_%d", j), Description: strings.Repeat("What it does. ", 10), Input: []byte(bigSchema())}
			if err := s.Compile(t); err != nil {
				b.Fatal(err)
			}
			srv.Tools = append(srv.Tools, t)
		}
		servers = append(servers, srv)
	}
	return view(servers...)
}

func BenchmarkWhole2000(b *testing.B) {
	v := manyTools(b, 2000)
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(New(Options{}).Whole(v).JSON().Body)))
	}
}

func BenchmarkForms2000(b *testing.B) {
	v := manyTools(b, 2000)
	for name, f := range map[string]Form{"3.0": {Older: true}, "flat": {Flat: true}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				d := New(Options{}).Whole(v)
				d.JSON()
				b.StartTimer()
				b.SetBytes(int64(len(d.Form(f).Body)))
			}
		})
	}
}

func BenchmarkYAML2000(b *testing.B) {
	v := manyTools(b, 2000)
	body := New(Options{}).Whole(v).JSON().Body
	b.ReportAllocs()
	for b.Loop() {
		toYAML(body)
	}
}

func BenchmarkKept2000(b *testing.B) {
	v := manyTools(b, 2000)
	d := New(Options{})
	d.Prepare(v)
	b.ReportAllocs()
	for b.Loop() {
		d.Whole(v).JSON()
	}
}

func BenchmarkCompile(b *testing.B) {
	s := NewSchemas(nil)
	in := []byte(bigSchema())
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Compile(&bridge.Tool{Handle: "h", Name: "t", Input: in}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	var kb strings.Builder
	for i := range 10 {
		fmt.Fprintf(&kb, `,"property_%02d":"%s"`, i+1, strings.Repeat("x", 80))
	}
	docs := map[string]string{
		"small": `{"property_00":"x","who":{"name":"A","age":7}}`,
		"1KB":   `{"property_00":"x"` + kb.String() + `}`,
	}
	docs["plain"] = docs["small"]
	for name, doc := range docs {
		schema := bigSchema()
		if name == "plain" {
			schema = `{"type":"object","properties":{"property_00":{"type":"string"},"who":{"type":"object","required":["name"],"properties":{"age":{"type":"integer"}}}}}`
		}
		t := tool(b, "h", "t", schema)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := t.Arguments.Check([]byte(doc)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
