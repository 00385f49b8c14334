package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_$-]{1,60}$`)

// childPath adds a key to a path. Keys of mappings whose values are secret are
// shown only if they look like names: a slip can make a key out of a secret.
func childPath(path, key string, secret bool) string {
	switch {
	case plainKey.MatchString(key):
		if path == "" {
			return key
		}
		return path + "." + key
	case secret:
		return path + "[…]"
	}
	if runes := []rune(key); len(runes) > 60 {
		key = string(runes[:57]) + "…"
	}
	return path + "[" + strconv.Quote(key) + "]"
}

// didYouMean names the known key that is closest to a wrong one.
func didYouMean(key string, known []string) string {
	best, bestDistance := "", 3
	for _, k := range slices.Sorted(slices.Values(known)) {
		distance := editDistance(strings.ToLower(key), strings.ToLower(k))
		if distance < bestDistance && distance*2 < len(k) {
			best, bestDistance = k, distance
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// editDistance counts the bytes to insert, delete or replace.
func editDistance(a, b string) int {
	if len(a) > 60 || len(b) > 60 {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
