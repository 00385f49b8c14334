package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// A stage is one image that the Dockerfile describes: the last instruction of each kind.
type stage struct {
	name, from string
	last       map[string]string // :: instruction -> what follows it
}

func readDockerfile(t *testing.T) (stages []stage) {
	t.Helper()
	b, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case word == "" || strings.HasPrefix(word, "#"):
		case word == "FROM":
			from, name, _ := strings.Cut(rest, " AS ")
			stages = append(stages, stage{name: name, from: from, last: map[string]string{}})
		default:
			stages[len(stages)-1].last[word] = rest
		}
	}
	return stages
}

// words are the words of an instruction in the form that needs no shell.
func (s stage) words(t *testing.T, instruction string) (words []string) {
	t.Helper()
	_, list, _ := strings.Cut(s.last[instruction], "[")
	if err := json.Unmarshal([]byte("["+list), &words); err != nil || len(words) == 0 {
		t.Errorf("%s: %s %q is not a list of words: %v", s.name, instruction, s.last[instruction], err)
	}
	return words
}

// What the Dockerfile builds runs in its image: as nobody in particular, with
// no file but its own, none of which it could write, and as the first process.
func TestImage(t *testing.T) {
	stages := readDockerfile(t)
	if len(stages) != 3 || stages[1].name != "node" || stages[2].name != "bridge" || stages[2].from != "scratch" {
		t.Fatalf("stages = %+v", stages)
	}
	build, image := stages[0], stages[2]
	for _, s := range stages[1:] {
		program := s.words(t, "ENTRYPOINT")[0]
		if check := s.words(t, "HEALTHCHECK"); check[0] != program || check[1] != "health" || !strings.HasSuffix(s.last["COPY"], " "+program) {
			t.Errorf("%s: %q is asked whether it is well by %q", s.name, program, check)
		}
		if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(s.last["USER"]) {
			t.Errorf("%s runs as %q; Kubernetes must see that this is not root", s.name, s.last["USER"])
		}
	}

	binary := filepath.Join(t.TempDir(), "bridge")
	compile := exec.CommandContext(t.Context(), "sh", "-ec", replaced(t, build.last["RUN"], "-o /bridge ", `-o "$0" `), binary)
	compile.Dir = "../.."
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build.last["RUN"], err, out)
	}
	command := append(image.words(t, "ENTRYPOINT"), image.words(t, "CMD")...)
	at := "127.0.0.1:" + freePort(t)
	p := startCommand(t, contained(t, binary, image.last["USER"], append(command, "--listen", at)...))
	p.ready()
	if res := p.call("demo", "add", `{"a":40,"b":2}`, 200); string(res.body) != `{"sum":42}` {
		t.Errorf("a call in the image: %s", res.body)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil || os.Getuid() == 0 && !strings.Contains(string(status), "\nUid:\t65532\t65532\t65532\t65532\n") {
		t.Errorf("it runs as another user: %v\n%s", err, status)
	}
	check := exec.CommandContext(t.Context(), binary, image.words(t, "HEALTHCHECK")[1:]...)
	check.Env = append(os.Environ(), "BRIDGE_URL=http://"+at)
	if out, err := check.CombinedOutput(); err != nil || len(out) != 0 {
		t.Errorf("the image's own check: %v %s", err, out)
	}
	p.stop(syscall.SIGTERM)
	check = exec.CommandContext(t.Context(), binary, image.words(t, "HEALTHCHECK")[1:]...)
	check.Env = append(os.Environ(), "BRIDGE_URL=http://"+at)
	if out, err := check.CombinedOutput(); err == nil || !strings.Contains(string(out), "cannot be reached") {
		t.Errorf("the image's own check of nothing: %v %s", err, out)
	}
}

// contained is a command in a root of its own that has the program and cannot be
// written, with processes of its own, as a runtime of containers would start it.
func contained(t *testing.T, binary, user string, command ...string) *exec.Cmd {
	t.Helper()
	const script = `
		root=$1 binary=$2 user=$3
		shift 3
		mount --make-rprivate /
		mount -t tmpfs tmpfs "$root"
		mkdir "$root/proc" "$root/dev"
		mount -t proc proc "$root/proc"
		: >"$root/dev/null"
		mount --bind /dev/null "$root/dev/null"
		cp "$binary" "$root$1"
		mount -o remount,ro "$root"
		exec chroot ${user:+"--userspec=$user"} "$root" "$@"`
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	if uid := os.Getuid(); uid != 0 { // who has just one user to give
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		user = ""
	}
	cmd := exec.Command("sh", append([]string{"-euc", script, "sh", t.TempDir(), binary, user}, command...)...)
	cmd.SysProcAttr = attr
	return cmd
}
