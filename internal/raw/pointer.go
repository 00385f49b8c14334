package raw

import "strings"

var escapeToken = strings.NewReplacer("~", "~0", "/", "~1")

// AppendToken appends one reference token to a JSON pointer, escaped (RFC 6901 section 3).
func AppendToken(pointer, token string) string { return pointer + "/" + escapeToken.Replace(token) }
