package routes

import (
	"bytes"
	"encoding/json"
)

// encode returns v as JSON without escapes that only HTML needs. Raw messages in
// it keep their tokens as they are, every digit and the order of keys.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
