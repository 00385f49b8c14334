package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// A section is a table with a title.
type section struct {
	title string
	head  []string
	rows  [][]string
	foot  string
}

// report prints all that was measured, and writes it to a directory if one is wanted.
func (b *bench) report() error {
	targets := section{title: "What was to be reached", head: []string{"work", "measured", "floor", "goal", ""}}
	for _, g := range b.figures.goals(&b.plan) {
		targets.rows = append(targets.rows, []string{g.work, g.measured, g.floor, g.best, g.verdict()})
	}
	all := b.sections
	if len(targets.rows) > 0 {
		all = append([]section{targets}, all...)
	}
	intro := b.intro()
	fmt.Fprintln(b.out, intro)
	for _, s := range all {
		if err := s.text(b.out); err != nil {
			return err
		}
	}
	if b.results == "" {
		return nil
	}
	var md bytes.Buffer
	fmt.Fprintf(&md, "# Results of the benchmark\n\n<!-- Written by make bench. -->\n\n%s\n", intro)
	for i, s := range all {
		s.markdown(&md)
		if i == 0 && len(b.chart) > 0 {
			fmt.Fprintf(&md, "\n![calls per second](results.svg)\n")
		}
	}
	err := os.WriteFile(filepath.Join(b.results, "results.md"), md.Bytes(), 0o644) //nolint:gosec // for everybody to read
	if err == nil && len(b.chart) > 0 {
		err = os.WriteFile(filepath.Join(b.results, "results.svg"), svg(b.chart), 0o644) //nolint:gosec // the same
	}
	return err
}

func timesText(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func (b *bench) intro() string {
	var t strings.Builder
	fmt.Fprintf(&t, "One run of %.0f s on one machine: %s, %s of memory, %s/%s, %s.\n", time.Since(b.began).Seconds(), processor(), bytesText(totalMemory()), runtime.GOOS, runtime.GOARCH, runtime.Version())
	fmt.Fprintf(&t, "Load average before it: %s. Load generator and all that is measured share the cores, over loopback.\n", loadAverage)
	fmt.Fprintf(&t, "A figure of calls is the median of %d rounds of %v, in which all have their turn, with one connection two; ratios are medians of the ratios within a round.\n", b.rounds, b.span)
	fmt.Fprintf(&t, "What takes long is done %s; mcpo's large result and the profiles once. Between tables, minutes apart, the machine itself differs by up to a third: compare within one.\n", timesText(b.few))
	fmt.Fprint(&t, "No limit of the bridge binds; its log, one line for each call, goes to a file.\n")
	if len(b.missing) > 0 {
		fmt.Fprintf(&t, "Not measured, for want of it: %s.\n", strings.Join(b.missing, ", "))
	}
	return t.String()
}

func (s *section) text(w io.Writer) error {
	fmt.Fprintf(w, "\n%s\n", s.title)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  "+strings.Join(s.head, "\t"))
	for _, row := range s.rows {
		fmt.Fprintln(t, "  "+strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if s.foot != "" {
		fmt.Fprintln(w, "  "+s.foot)
	}
	return nil
}

func (s *section) markdown(w *bytes.Buffer) {
	fmt.Fprintf(w, "\n## %s\n\n| %s |\n|%s\n", s.title, strings.Join(s.head, " | "), strings.Repeat("---|", len(s.head)))
	for _, row := range s.rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
	if s.foot != "" {
		fmt.Fprintf(w, "\n%s\n", s.foot)
	}
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// number writes a count with three digits that count.
func number(f float64) string {
	if f >= 1000 {
		step := math.Pow(10, math.Floor(math.Log10(f))-2)
		f = math.Round(f/step) * step
	}
	s := strconv.FormatFloat(f, 'f', 0, 64)
	if f < 100 {
		s = strconv.FormatFloat(f, 'f', 1, 64)
	}
	whole, rest, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return whole
}

func durationText(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < 100*time.Microsecond:
		return fmt.Sprintf("%.1f µs", float64(d)/1e3)
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(d)/1e3)
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/1e6)
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}

func bytesText(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%.0f KB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.0f MB", float64(n)/(1<<20))
	}
}

// loadAverage is that of the machine before this program did anything.
var loadAverage = func() string {
	b, err := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(b)); err == nil && len(f) > 1 {
		return f[0] + " in the last minute, " + f[1] + " in five"
	}
	return "unknown"
}()

// processor says what the machine computes with.
func processor() string {
	model := "a processor"
	b, _ := os.ReadFile("/proc/cpuinfo")
	for l := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%s of %s", plural(runtime.NumCPU(), "core"), model)
}

func totalMemory() int64 {
	b, _ := os.ReadFile("/proc/meminfo")
	for l := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(l, "MemTotal:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}
