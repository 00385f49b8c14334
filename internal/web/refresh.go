//go:build ignore

// Command refresh replaces the files of Swagger UI in swagger-ui/ by those of
// the version below. Run it with "go generate ./internal/web"; it needs npm.
//
// To move to another version: change version, run, copy the integrity that the
// error names after checking it against the registry's, and run again.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	version   = "5.35.0"
	integrity = "sha512-U06rpMtW9V3XPGOBeamTUSr0Z09jMX4IJuANpE/EZbAhw0G8CgwrzU4YmXkn/h0wCDNsXdGarTNNHC3sU8yVUQ=="
	into      = "swagger-ui"
)

// files are the parts of the package that a page needs, and the texts that its
// licence asks to keep with them. The standalone preset is not among them: all it
// adds to a page is a bar to load other documents, which ours do not offer.
var files = []string{
	"LICENSE",
	"NOTICE",
	"favicon-32x32.png",
	"swagger-ui-bundle.js",
	"swagger-ui-bundle.js.LICENSE.txt",
	"swagger-ui.css",
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("refresh: ")
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	tarball, err := fetch()
	if err != nil {
		return err
	}
	sum := sha512.Sum512(tarball)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != integrity {
		return fmt.Errorf("swagger-ui-dist %s has the integrity %s, want %s", version, got, integrity)
	}
	found, err := unpack(tarball)
	if err != nil {
		return err
	}
	// A clean directory, so that a file that went out of use does not stay.
	if err := os.RemoveAll(into); err != nil {
		return err
	}
	if err := os.Mkdir(into, 0o755); err != nil {
		return err
	}
	for _, name := range files {
		data, ok := found[name]
		if !ok {
			return fmt.Errorf("the package holds no %s", name)
		}
		if err := write(name, data); err != nil {
			return err
		}
	}
	return nil
}

// fetch has npm download the package, so that its settings for proxies and
// mirrors apply.
func fetch() ([]byte, error) {
	dir, err := os.MkdirTemp("", "swagger-ui-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("npm", "pack", "--silent", "--ignore-scripts", "swagger-ui-dist@"+version)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("npm pack: %w", err)
	}
	return os.ReadFile(filepath.Join(dir, filepath.Base(strings.TrimSpace(string(out)))))
}

// unpack returns the regular files of the package, by name.
func unpack(tarball []byte) (map[string][]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(tarball))
	if err != nil {
		return nil, err
	}
	found := make(map[string][]byte)
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			return nil, err
		}
		found[strings.TrimPrefix(h.Name, "package/")] = data
	}
}

// write stores one file, compressed where that makes it smaller. The header of
// the result holds neither name nor time: the same version gives the same bytes.
func write(name string, data []byte) error {
	path := filepath.Join(into, name)
	if filepath.Ext(name) == ".png" || len(data) < 1024 {
		return os.WriteFile(path, data, 0o644)
	}
	var buf bytes.Buffer
	zw, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := zw.Write(data); err != nil {
		return err
	}
	if err := zw.Close(); err != nil {
		return err
	}
	return os.WriteFile(path+".gz", buf.Bytes(), 0o644)
}
