package artifacts

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
)

// ETag returns a strong entity tag, with its quotes, of a view of the artifact: view and parts say which, as the
// caller likes. Data never changes, so it depends on nothing else; for summaries pass the
// keeper's [Keeper.SummaryTag] too, since they depend on settings.
func (a *Artifact) ETag(view string, parts ...string) string {
	h := sha256.New()
	for _, s := range append([]string{a.meta.Ref, a.meta.digest, strconv.FormatInt(a.meta.Created.UnixNano(), 36), view}, parts...) {
		h.Write([]byte(strconv.Itoa(len(s)) + ":" + s))
	}
	return `"` + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]) + `"`
}

// SummaryTag names the settings that summaries depend on.
func (k *Keeper) SummaryTag() string {
	return strconv.Itoa(k.after) + "." + strconv.Itoa(k.chars) + "." + strconv.Itoa(k.promote)
}
