package config

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
)

// FromCommand returns the configuration of one server with a command line, as
// in: bridge serve -- npx -y @modelcontextprotocol/server-everything. The words
// are taken as they are: the shell has expanded what there was to expand. Its
// handle comes from the words, see [CommandHandle].
func FromCommand(argv []string) (*Config, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("no command after --")
	}
	for _, word := range argv {
		if err := noNUL(word); err != nil {
			return nil, errors.New("the command line " + err.Error())
		}
	}
	cfg := Default()
	s := newServer(CommandHandle(argv), &cfg.Bridge)
	s.Transport = Stdio
	s.MaxConcurrent = cfg.Bridge.Pool.StdioCallsPerServer
	s.Command = Plain(argv[0])
	for _, arg := range argv[1:] {
		s.Args = append(s.Args, Plain(arg))
	}
	cfg.Servers = []Server{s}
	return cfg, nil
}

// CommandHandle makes a handle from a command line: what is run, not what runs
// it, without what every server has in its name.
//
//	npx -y @modelcontextprotocol/server-everything  everything
//	uvx mcp-server-time                             time
//	python3 /opt/weather/server.py                  weather
func CommandHandle(argv []string) string {
	words := argv
	for range 4 { // a launcher may launch a launcher: env npx …
		if len(words) == 0 {
			break
		}
		skip, ok := launchers[programName(words[0])]
		if !ok {
			break
		}
		rest := skip.program(words[1:])
		if len(rest) == 0 {
			break
		}
		words = rest
	}
	if len(words) == 0 {
		return fallbackHandle
	}
	handle := handleFromWord(words[0])
	if handle == "bridge" || handle == "" {
		// Our own binary: bridge demo.
		for _, word := range words[1:] {
			if h := handleFromWord(word); !strings.HasPrefix(word, "-") && h != "" && h != "bridge" {
				return h
			}
		}
		return fallbackHandle
	}
	return handle
}

const fallbackHandle = "server"

// A launcher is a program that runs another, which its arguments name.
type launcher struct {
	verbs  []string // words in front: run in docker run
	valued []string // flags that take the next word
	named  []string // flags whose next word is what is run
}

var (
	npxLauncher = launcher{
		verbs: []string{"exec", "x", "dlx", "run"}, valued: []string{"--registry", "--cache", "--prefix", "--userconfig", "-w", "--workspace"},
		named: []string{"-p", "--package"},
	}
	pythonLauncher = launcher{valued: []string{"-W", "-X"}, named: []string{"-m"}}
	nodeLauncher   = launcher{
		verbs:  []string{"run"},
		valued: []string{"-r", "--require", "--import", "--loader", "--env-file", "--config", "-c", "--conditions", "-C"},
	}
	uvLauncher = launcher{
		verbs: []string{"run", "tool"},
		valued: []string{
			"--from", "--with", "-w", "--python", "-p", "--directory", "--project", "--index-url", "--index", "--extra-index-url",
			"--env-file", "--with-editable", "--with-requirements", "--extra", "--group",
		},
		named: []string{"-m", "--module"},
	}
	dockerLauncher = launcher{
		verbs: []string{"container", "run"},
		valued: []string{
			"-e", "--env", "--env-file", "-v", "--volume", "--mount", "--name", "--network", "--net", "-p", "--publish", "-w", "--workdir",
			"-u", "--user", "--platform", "--entrypoint", "-m", "--memory", "--cpus", "-l", "--label", "--add-host", "--pull", "-h", "--hostname",
			"--cap-drop", "--cap-add", "--security-opt", "--tmpfs", "--gpus", "--dns", "--ulimit", "--log-driver",
		},
	}
	javaLauncher = launcher{valued: []string{"-cp", "-classpath", "--class-path", "--module-path"}, named: []string{"-jar"}}
	goLauncher   = launcher{verbs: []string{"run"}, valued: []string{"-C", "-tags", "-ldflags", "-mod", "-modfile"}}
	plainRunner  = launcher{}
	envLauncher  = launcher{valued: []string{"-u", "--unset", "-C", "--chdir"}}
)

var launchers = map[string]launcher{
	"npx": npxLauncher, "npm": npxLauncher, "pnpm": npxLauncher, "pnpx": npxLauncher, "yarn": npxLauncher, "bunx": npxLauncher,
	"python": pythonLauncher, "python3": pythonLauncher,
	"node": nodeLauncher, "bun": nodeLauncher, "deno": nodeLauncher, "tsx": nodeLauncher, "ts-node": nodeLauncher,
	"uvx": uvLauncher, "uv": uvLauncher, "pipx": uvLauncher,
	"docker": dockerLauncher, "podman": dockerLauncher,
	"java": javaLauncher, "go": goLauncher,
	"sh": plainRunner, "bash": plainRunner, "zsh": plainRunner, "ruby": plainRunner, "dotnet": plainRunner, "exec": plainRunner,
	"env": envLauncher,
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// program returns the words from the one that names what is run.
func (l launcher) program(words []string) []string {
	verbs := l.verbs
	for i := 0; i < len(words); i++ {
		word := words[i]
		flag, value, hasValue := strings.Cut(word, "=")
		switch {
		case word == "--" || assignment.MatchString(word):
		case slices.Contains(l.named, flag):
			if hasValue {
				return append([]string{value}, words[i+1:]...)
			}
			return words[min(i+1, len(words)):]
		case slices.Contains(l.valued, word):
			i++
		case strings.HasPrefix(word, "-"):
		case slices.Contains(verbs, word):
			verbs = slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return v == word })
		default:
			return words[i:]
		}
	}
	return nil
}

var versionedPython = regexp.MustCompile(`^python[23](\.\d+)?$`)

func programName(command string) string {
	name := strings.ToLower(baseName(command))
	for _, ext := range []string{".exe", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, ext)
	}
	if versionedPython.MatchString(name) {
		return "python3"
	}
	return name
}

func baseName(p string) string { return path.Base(strings.ReplaceAll(p, `\`, "/")) }

var (
	wordVersion   = regexp.MustCompile(`(==|>=|<=|~=|@sha256:|\[).*$`)
	wordExtension = regexp.MustCompile(`\.(py|js|mjs|cjs|ts|mts|tsx|rb|sh|jar|exe|cmd|bat|dll|go|git|phar|php)$`)
	handleAffix   = regexp.MustCompile(`(?i)^(mcp[-_.]server|server[-_.]mcp|mcp|server)[-_.]+|[-_.]+(mcp[-_.]server|server[-_.]mcp|mcp|server|stdio)$`)
	handleUnfit   = regexp.MustCompile(`[^A-Za-z0-9.-]+`)
)

// genericNames say nothing about a server; what they are in does.
var genericNames = []string{
	"", "index", "main", "__main__", "server", "mcp", "mcp-server", "mcp_server", "app", "cli", "start", "run", "stdio", "latest",
	"dist", "build", "src", "bin", "lib", "out", "target", "cmd", "release", "debug", ".venv", "venv", "node_modules", ".bin", ".", "..",
}

// handleFromWord makes a handle from the name of a package, an image, or a
// file. It returns "" if nothing in it tells what the server is.
func handleFromWord(word string) string {
	word = strings.TrimRight(strings.ReplaceAll(word, `\`, "/"), "/")
	if _, rest, ok := strings.Cut(word, "://"); ok {
		_, word, _ = strings.Cut(rest, "/") // of git+https://host/owner/name
	}
	word = wordVersion.ReplaceAllString(word, "")
	segments := strings.Split(word, "/")
	for _, segment := range slices.Backward(segments) {
		name := strings.TrimPrefix(segment, "@")
		// A version: name@1.2, image:tag.
		if i := strings.IndexAny(name, "@:"); i > 0 {
			name = name[:i]
		}
		name = wordExtension.ReplaceAllString(name, "")
		if h := cleanHandle(name); h != "" {
			return h
		}
	}
	return ""
}

// cleanHandle takes away what every server has in its name and what would not
// stand in an operation's name as it is. It returns "" if nothing is left.
func cleanHandle(name string) string {
	for {
		if slices.Contains(genericNames, strings.ToLower(name)) {
			return ""
		}
		shorter := handleAffix.ReplaceAllString(name, "")
		if shorter == name || shorter == "" {
			break
		}
		name = shorter
	}
	name = handleUnfit.ReplaceAllString(name, "-")
	name = strings.ReplaceAll(name, ".", "-")
	return strings.Trim(name, "-")
}
