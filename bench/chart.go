package main

import (
	"bytes"
	"fmt"
	"html"
)

// A panel is one group of bars, to one scale.
type panel struct {
	title, unit string
	bars        []bar
}

type bar struct {
	name  string
	value spread
}

// svg draws the panels one below the other: a bar for each median, and a line from the
// lowest to the highest round. The colours follow those of whoever looks.
func svg(panels []panel) []byte {
	const (
		width, left, right = 860, 230, 90
		line, gap, top     = 22, 46, 20
	)
	height := top
	for _, p := range panels {
		height += gap + len(p.bars)*line
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">
<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.bar { fill: #8c959f }
.ours { fill: #0969da }
.noise { stroke: #1f2328; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.bar { fill: #6e7681 }
.ours { fill: #388bfd }
.noise { stroke: #e6edf3 }
}
</style>
`, width, height, width, height)
	y := top
	for _, p := range panels {
		most := 0.0
		for _, r := range p.bars {
			most = max(most, r.value.high)
		}
		x := func(v float64) float64 {
			if most == 0 {
				return left
			}
			return left + v/most*(width-left-right)
		}
		fmt.Fprintf(&b, `<text class="title" x="0" y="%d">%s, %s</text>`+"\n", y, html.EscapeString(p.title), p.unit)
		y += 12
		for _, r := range p.bars {
			class := "bar"
			if len(r.name) >= len(nameB) && r.name[:len(nameB)] == nameB {
				class = "bar ours"
			}
			middle := float64(y) + line/2
			fmt.Fprintf(&b, `<text x="%d" y="%.0f" text-anchor="end">%s</text>`, left-8, middle+4, html.EscapeString(r.name))
			fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`, class, left, y+3, x(r.value.median)-left, line-6)
			fmt.Fprintf(&b, `<line class="noise" x1="%.1f" y1="%.0f" x2="%.1f" y2="%.0f"/>`, x(r.value.low), middle, x(r.value.high), middle)
			fmt.Fprintf(&b, `<text x="%.1f" y="%.0f">%s</text>`+"\n", x(r.value.high)+8, middle+4, number(r.value.median))
			y += line
		}
		y += gap - 12
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
