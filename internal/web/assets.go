package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:generate go run refresh.go

// Large files are stored compressed, under their name with ".gz" behind it: that
// is what nearly every client asks for, and it keeps the binary small.
//
//go:embed swagger-ui static
var embedded embed.FS

// assets are the embedded files by the names that pages know them under.
var assets = sync.OnceValue(func() map[string]*asset {
	m := make(map[string]*asset)
	for _, dir := range []string{"swagger-ui", "static"} {
		entries, err := embedded.ReadDir(dir)
		if err != nil {
			panic(err) // the directive above names it
		}
		for _, e := range entries {
			data, err := embedded.ReadFile(path.Join(dir, e.Name()))
			if err != nil {
				panic(err)
			}
			name, zipped := strings.CutSuffix(e.Name(), ".gz")
			m[name] = &asset{mediaType: mediaType(name), tag: digest(data), data: data, zipped: zipped}
		}
	}
	return m
})

// Assets serves the files that pages load, each by the last segment of the
// request's path; a request for anything else is passed to notFound.
func Assets(notFound http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := assets()[path.Base(r.URL.Path)]
		if !ok {
			notFound.ServeHTTP(w, r)
			return
		}
		a.ServeHTTP(w, r)
	})
}

// An asset is one embedded file.
type asset struct {
	mediaType string
	tag       string // entity tag of data, without quotes
	data      []byte
	zipped    bool // data is compressed with gzip
}

func (a *asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !a.zipped {
		serve(w, r, a.mediaType, a.tag, a.data)
		return
	}
	w.Header().Add("Vary", "Accept-Encoding")
	if acceptsGzip(r.Header) {
		w.Header().Set("Content-Encoding", "gzip")
		// A strong tag names the bytes that are sent, so each encoding has its own.
		serve(w, r, a.mediaType, a.tag+"-gzip", a.data)
		return
	}
	// Decompressing each time is slow and needs no memory in between; only
	// the rare client that does not take gzip comes here.
	plain, err := unzip(a.data)
	if err != nil {
		http.Error(w, "This file is damaged in the program; build it again.", http.StatusInternalServerError)
		return
	}
	serve(w, r, a.mediaType, a.tag, plain)
}

func unzip(data []byte) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(zr)
}

// mediaType is the type of a file by its name. The mime package's own answer
// would depend on files of the machine it runs on.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".png":
		return "image/png"
	default:
		return "text/plain; charset=utf-8"
	}
}
