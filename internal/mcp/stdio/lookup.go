package stdio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// locate finds the file to run for a command: a name without a slash in the PATH of the
// environment it will have, anything else as a path relative to dir. The path it returns is absolute.
// Its errors name what is wrong and are fit for people.
func locate(command, dir string, env []string) (string, error) {
	if command == "" {
		return "", errors.New("no command is given")
	}
	base, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if dir != "" {
		if err := checkDir(dir); err != nil {
			return "", err
		}
	}
	if strings.ContainsRune(command, '/') {
		path := command
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
		switch err := executable(path); {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("command %q does not exist", command)
		case err != nil:
			return "", fmt.Errorf("command %q cannot be run: %w", command, err)
		}
		return path, nil
	}
	list, ok := lookEnv(env, "PATH")
	if !ok {
		list = os.Getenv("PATH")
	}
	var denied error
	for _, d := range filepath.SplitList(list) {
		// An empty or relative entry would run whatever lies in the working directory.
		if !filepath.IsAbs(d) {
			continue
		}
		path := filepath.Join(d, command)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if denied == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			denied = fmt.Errorf("command %q was found as %q, but cannot be run: %w", command, path, err)
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", fmt.Errorf("command %q not found in PATH; install it or give its full path", command)
}

func checkDir(dir string) error {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("working directory %q does not exist", dir)
	case err != nil:
		return fmt.Errorf("working directory %q cannot be used: %w", dir, reason(err))
	case !info.IsDir():
		return fmt.Errorf("working directory %q is not a directory", dir)
	}
	if err := unix.Access(dir, unix.X_OK); err != nil {
		return fmt.Errorf("working directory %q cannot be used: %w", dir, err)
	}
	return nil
}

// executable says why the file at path cannot be run, or nil.
func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return reason(err)
	}
	if info.IsDir() {
		return errors.New("it is a directory")
	}
	// Root passes access(2) with a single x bit set anywhere, as exec does.
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("%w (is it marked executable?)", err)
	}
	return nil
}

// reason strips the path from an error of a file operation.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// lookEnv returns the last setting of name, the one that counts.
func lookEnv(env []string, name string) (string, bool) {
	for _, e := range slices.Backward(env) {
		if k, v, ok := strings.Cut(e, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}
