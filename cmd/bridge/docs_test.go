package main

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mcpbridge/internal/config"
)

// What README.md, docs/, examples/ and deploy/ say is done here, by a reader who follows each
// document from its beginning in a directory of its own:
//
//   - A block of sh is run by one bash for the whole document. Its commands must succeed, or end with the
//     status that a comment <!-- exit N --> in front of the block says.
//   - A block right behind it is its output, on both streams. In it "…" stands for anything.
//   - A block of yaml with a name behind the language (```yaml bridge.yaml) is written to that file; any other
//     block of yaml or json with servers must be a right configuration.
//   - bin/bridge serve and make run start a bridge and end the one before; with a & they are bash's own.
//   - A comment <!-- not run: reason --> in front of a block says why it is not run.
//
// What differs from a reader's machine: 127.0.0.1 is another loopback address for each document, so that
// all can have the same ports (BRIDGE_URL has it); npx runs what testdata/npm has; make build has been done; and what is to be
// two minutes is two seconds. A "…" in a command or file is filled in as a reader would: see fill.
func TestDocs(t *testing.T) {
	var run, skipped atomic.Int32
	t.Cleanup(func() { t.Logf("%d blocks of sh were run, %d are marked not to be", run.Load(), skipped.Load()) })
	for _, path := range docPaths(t) {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(path, "../../"), ".md"), func(t *testing.T) {
			t.Parallel()
			r := newReader(t)
			blocks := fences(t, path)
			for i, b := range blocks {
				switch {
				case strings.HasPrefix(b.note, "not run: "):
					skipped.Add(1)
				case b.lang == "sh":
					run.Add(1)
					want := ""
					shown := i+1 < len(blocks) && blocks[i+1].output
					if shown {
						want = blocks[i+1].text
					}
					r.sh(b, want, shown)
				case b.output:
				case b.file != "":
					write(t, filepath.Join(r.dir, b.file), r.here(r.fill(b)))
				case strings.Contains(b.text, "mcpServers") || strings.HasPrefix(b.text, "bridge:"):
					wantConfig(t, b)
				}
			}
		})
	}
}

// docPaths returns the paths of all documents.
func docPaths(t *testing.T) []string {
	t.Helper()
	paths := []string{"../../README.md", "../../deploy/README.md"}
	for _, dir := range []string{"docs", "examples"} {
		more, err := filepath.Glob("../../" + dir + "/*.md")
		if err != nil || len(more) == 0 {
			t.Fatalf("no documents in %s: %v", dir, err)
		}
		paths = append(paths, more...)
	}
	return paths
}

// A fence is a fenced block of a document.
type fence struct {
	line       int
	lang, file string // of ```lang file
	text, note string // the note is a comment right in front of it
	output     bool   // of the block of sh in front of it
}

func (b fence) String() string { return fmt.Sprintf("the block in line %d", b.line) }

var (
	fenceStart = regexp.MustCompile("^( *)```([a-z]*) ?(.*)$")
	noteLine   = regexp.MustCompile(`^ *<!-- ((?:not run: |exit )[^>]+) -->$`)
)

// fences reads the blocks of the document.
func fences(t *testing.T, path string) []fence {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []fence
	var in *fence
	note, between, indent := "", true, ""
	for i, line := range strings.Split(string(b), "\n") {
		m := fenceStart.FindStringSubmatch(line)
		n := noteLine.FindStringSubmatch(line)
		switch {
		case in != nil && strings.TrimSpace(line) == "```":
			all, in, note, between = append(all, *in), nil, "", false
		case in != nil:
			in.text += strings.TrimPrefix(line, indent) + "\n"
		case m != nil:
			indent = m[1]
			in = &fence{line: i + 1, lang: m[2], file: m[3], note: note}
			if !slices.Contains([]string{"", "sh", "yaml", "json"}, in.lang) {
				t.Errorf("%s: %v is of a language that nobody checks: %q", path, in, in.lang)
			}
			last := len(all) - 1
			in.output = !between && last >= 0 && all[last].lang == "sh" && in.lang != "sh" && in.lang != "yaml" && in.file == "" && in.note == ""
		case n != nil:
			note = n[1]
		case strings.TrimSpace(line) != "":
			note, between = "", true
		}
	}
	if in != nil {
		t.Fatalf("%s: %v has no end", path, in)
	}
	return all
}

// wantConfig demands that the block is a right configuration, all by itself.
func wantConfig(t *testing.T, b fence) {
	t.Helper()
	getenv := func(name string) string { return "value-of-" + name }
	text := regexp.MustCompile(`\$\{file:[^}]*\}`).ReplaceAllString(b.text, "secret")
	_, warnings, err := config.Read(strings.NewReader(text), "bridge.yaml", getenv)
	if err != nil || len(warnings) > 0 {
		t.Errorf("%v is no right configuration: %v %v", b, err, warnings)
	}
}

// A reader follows one document.
type reader struct {
	t      *testing.T
	dir    string
	host   string // what 127.0.0.1 is here
	in     io.Writer
	out    *bufio.Reader
	seen   string   // all that was printed
	bridge *process // that is running, if any
	env    []string
}

// shortened are texts of documents that are not run as they are, and what they are instead.
var shortened = strings.NewReplacer(
	`"duration": 120`, `"duration": 2`, "Duration: 120 seconds", "Duration: 2 seconds",
	"make build", ":", "make run", "bin/bridge serve --demo",
)

// here is text for this reader's directory, address and patience.
func (r *reader) here(text string) string {
	return strings.ReplaceAll(shortened.Replace(text), "127.0.0.1", r.host)
}

func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir()}
	var b [2]byte
	_, _ = rand.Read(b[:])
	r.host = fmt.Sprintf("127.%d.%d.9", b[0], b[1])
	binary, err := exec.LookPath("bridge")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"bin", "path", "home"} {
		if err := os.Mkdir(filepath.Join(r.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{binary: "bin/bridge", root + "/examples": "examples", root + "/deploy": "deploy"} {
		if err := os.Symlink(from, filepath.Join(r.dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	npx := "#!/bin/sh\n[ \"$1\" = -y ] && shift\npackage=$1\nshift\nexec node " + root + "/testdata/npm/node_modules/\"$package\"/dist/index.js \"$@\"\n"
	if err := os.WriteFile(filepath.Join(r.dir, "path/npx"), []byte(npx), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(r.dir, "home/.curlrc"), "silent\nshow-error\n") // as it is when it writes to a terminal
	tag := "BRIDGE_TEST_TAG=" + t.Name() + "." + r.host
	r.env = append(os.Environ(), "HOME="+filepath.Join(r.dir, "home"), "PATH="+filepath.Join(r.dir, "path")+":"+os.Getenv("PATH"), "BRIDGE_URL=http://"+r.host+":8080")

	bash := exec.CommandContext(t.Context(), "bash", "--norc", "--noprofile")
	bash.Dir, bash.Env = r.dir, append(slices.Clone(r.env), tag)
	bash.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	bash.Cancel = func() error { return syscall.Kill(-bash.Process.Pid, syscall.SIGKILL) }
	in, err := bash.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	bash.Stdout, bash.Stderr = write, write
	if err := bash.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	r.in, r.out = in, bufio.NewReader(out)
	t.Cleanup(func() {
		in.Close()
		_ = syscall.Kill(-bash.Process.Pid, syscall.SIGTERM) // what it runs in the background; it has nothing else left to do
		_ = bash.Wait()
		out.Close()
		(&process{t: t, tag: tag}).wantNoProcess()
	})
	r.bash("trap 'failed=$?' ERR; set -o pipefail")
	return r
}

// endMark is what follows a command's output; no document has it.
const endMark = "\x1e"

// bash runs commands and returns what they print, and the last status that was not zero.
func (r *reader) bash(commands string) (printed string, status int) {
	r.t.Helper()
	if _, err := fmt.Fprintf(r.in, "failed=0\n{\n%s\n} </dev/null\nprintf '%s%%d\\n' \"$failed\"\n", commands, endMark); err != nil {
		r.t.Fatal(err)
	}
	printed, err := r.out.ReadString(endMark[0])
	if err == nil {
		var line string
		if line, err = r.out.ReadString('\n'); err == nil {
			status, err = strconv.Atoi(strings.TrimSpace(line))
		}
	}
	if err != nil {
		r.t.Fatalf("bash ended in\n%s\n%s%v", commands, printed, err)
	}
	printed = strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(printed, endMark), "\r\n", "\n"), r.host, "127.0.0.1")
	r.seen += printed
	return printed, status
}

var serveLine = regexp.MustCompile(`(?m)^((?:[A-Z_]+=\S+ )*)(bin/bridge serve)\b(.*)$`)

// sh runs a block and demands its output, if it is shown.
func (r *reader) sh(b fence, want string, shown bool) {
	r.t.Helper()
	text := r.here(r.fill(b))
	printed, failed := "", 0
	run := func(commands string) {
		if strings.TrimSpace(commands) == "" {
			return
		}
		out, status := r.bash(commands)
		printed += out
		if status != 0 {
			failed = status
		}
	}
	for {
		at := serveLine.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		run(text[:at[0]])
		env, rest := text[at[2]:at[3]], text[at[6]:at[7]]
		if !strings.Contains(rest, "--listen") {
			rest = " --listen " + r.host + ":8080" + rest
		}
		rest, _, _ = strings.Cut(rest, "  #")
		if r.bridge != nil {
			r.bridge.stop(syscall.SIGTERM) // as Ctrl-C does
			r.bridge = nil
		}
		if before, background := strings.CutSuffix(strings.TrimSpace(rest), "&"); background {
			run(env + "bin/bridge serve " + before + "&")
			(&process{t: r.t, base: "http://" + r.host + ":8080"}).waitReady()
		} else {
			cmd := exec.Command("bash", "-c", env+"exec bin/bridge serve "+rest)
			cmd.Dir, cmd.Env = r.dir, r.env
			r.bridge = startCommand(r.t, cmd)
			r.bridge.waitReady()
		}
		text = text[at[1]:]
	}
	run(text)
	exit := 0
	if n, ok := strings.CutPrefix(b.note, "exit "); ok {
		exit, _ = strconv.Atoi(n)
	}
	if failed != exit {
		r.t.Fatalf("%v ended with %d, want %d:\n%s%s", b, failed, exit, b.text, printed)
	}
	want, printed = strings.TrimSpace(shortened.Replace(want)), strings.TrimSpace(trailing.ReplaceAllString(printed, ""))
	if shown && !matches(want, printed) {
		r.t.Errorf("%v:\n%sprinted\n%s\nand not\n%s", b, b.text, printed, want)
	}
}

// trailing is the space at the ends of lines, which nobody sees.
var trailing = regexp.MustCompile(`(?m)[ \t]+$`)

// matches reports whether text is what want says, where "…" is anything.
func matches(want, text string) bool {
	parts := strings.Split(want, "…")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*?") + `\z`).MatchString(text)
}

var (
	blankURL  = regexp.MustCompile(`/(jobs/|artifacts/mcp~)…`)
	blankHash = regexp.MustCompile(`(?m)^.*\bid: ([A-Za-z0-9-]+),.*"sha256:…".*$`)
	lastJob   = regexp.MustCompile(`(?i)\nLocation: [./]*jobs/(\S+)`)
	lastRef   = regexp.MustCompile(`(?i)\nArtifact-Ref: mcp~(\S+)`)
)

// fill puts into a block what its reader has to: the job or the artifact that the last
// answer named, and the hashes of keys that were made before.
func (r *reader) fill(b fence) string {
	r.t.Helper()
	text := blankURL.ReplaceAllStringFunc(b.text, func(s string) string {
		last := lastRef
		if strings.HasPrefix(s, "/jobs/") {
			last = lastJob
		}
		found := last.FindAllStringSubmatch(r.seen, -1)
		if found == nil {
			r.t.Fatalf("%v: nothing was printed before that %q could stand for", b, s)
		}
		return strings.TrimSuffix(s, "…") + found[len(found)-1][1]
	})
	return blankHash.ReplaceAllStringFunc(text, func(line string) string {
		id := blankHash.FindStringSubmatch(line)[1]
		var printed strings.Builder
		printed.WriteString(r.seen)
		entries, _ := filepath.Glob(filepath.Join(r.dir, "*.entry"))
		for _, path := range entries {
			entry, err := os.ReadFile(path)
			if err != nil {
				r.t.Fatal(err)
			}
			printed.WriteString(string(entry))
		}
		hash := regexp.MustCompile(`id: "?` + id + `"?,.*(sha256:[0-9a-f]{64})`).FindStringSubmatch(printed.String())
		if hash == nil {
			r.t.Fatalf("%v: no entry was printed for the key %s:\n%s", b, id, printed.String())
		}
		return strings.Replace(line, "sha256:…", hash[1], 1)
	})
}

// waitReady waits until a bridge that bash started answers and is ready.
func (p *process) waitReady() {
	p.t.Helper()
	for range 600 {
		if res, err := http.Get(p.base + "/readyz"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.t.Fatal("the bridge does not become ready")
}
