package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
)

// credentialOf returns the one credential of a request, or "" if it has none.
func credentialOf(h http.Header) (string, error) {
	authorization, key := h["Authorization"], h["X-Api-Key"]
	if len(authorization)+len(key) == 0 {
		return "", nil
	}
	if len(authorization) > 1 || len(key) > 1 {
		return "", refused(errors.New("a header with a credential is there twice"))
	}
	var found string
	if len(authorization) == 1 {
		scheme, token, _ := strings.Cut(authorization[0], " ")
		if found = strings.TrimLeft(token, " "); !strings.EqualFold(scheme, "Bearer") || found == "" {
			return "", refused(errors.New("the Authorization header is not Bearer and a credential"))
		}
	}
	if len(key) == 1 {
		if key[0] == "" {
			return "", refused(errors.New("the X-API-Key header is empty"))
		}
		if found != "" && found != key[0] {
			return "", refused(errors.New("the headers Authorization and X-API-Key have different credentials"))
		}
		found = key[0]
	}
	return found, nil
}

// A Digest is the SHA-256 of a credential. Keys are long and random, so theirs need
// no salt and no slowness: whoever reads a digest cannot find its key by trying.
type Digest [sha256.Size]byte

// keyPrefix tells people, and programs that look for lost secrets, what a key is.
const keyPrefix = "mcpb_"

var keyEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewKey returns a new API key, of 256 random bits.
func NewKey() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return keyPrefix + keyEncoding.EncodeToString(b[:])
}

// DigestOf returns the digest of an API key, or an error if it is not fit to be one:
// shorter than 20 or longer than 512 bytes, or with characters that a header does
// not carry unchanged. The error does not have the key in it.
func DigestOf(key string) (Digest, error) {
	switch {
	case len(key) < minKey:
		return Digest{}, errors.New("the key is too short to be safe: it has fewer than 20 characters")
	case len(key) > maxKey:
		return Digest{}, errors.New("the key has more than 512 characters")
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return Digest{}, errors.New("the key has a character that is no visible ASCII character")
	}
	return sha256.Sum256([]byte(key)), nil
}

const minKey = 20

const digestPrefix = "sha256:"

// String returns the digest as configurations have it: "sha256:" and 64 hexadecimal digits.
func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

// ParseDigest reads what String returns. The error does not have the text in it.
func ParseDigest(s string) (d Digest, err error) {
	b, err := hex.DecodeString(strings.TrimPrefix(s, digestPrefix))
	if err != nil || len(b) != len(d) || !strings.HasPrefix(s, digestPrefix) {
		return d, errors.New(`not "sha256:" and 64 hexadecimal digits`)
	}
	return Digest(b), nil
}
