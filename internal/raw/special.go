package raw

import (
	"encoding/binary"
	"math/bits"
)

// Eight bytes are looked at in one step: each constant repeats a byte in all of a word.
const (
	ones   = 0x0101010101010101
	highs  = 0x80 * ones
	quotes = '"' * ones
	slants = '\\' * ones
)

// special returns the index of the first byte at or after i that ends a run of
// plain bytes in a string, a quote, a backslash or a control character, or len(b).
func special(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		// (x - 1) &^ x has its high bit set in a byte that is 0, and (x - 0x20) &^ x
		// in one below 0x20. Borrows make false ones only above a true one, and
		// the lowest is the first.
		q, s := w^quotes, w^slants
		if hit := ((q-ones)&^q | (s-ones)&^s | (w-0x20*ones)&^w) & highs; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < 0x20 {
			return i
		}
	}
	return i
}
