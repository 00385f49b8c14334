package config

import (
	"errors"
	"log/slog"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// The parsers of this file return errors that continue a sentence whose
// subject is the text, and never hold the text itself.

const maxDuration = 365 * 24 * time.Hour

var errDuration = errors.New("is not a duration: write 300ms, 20s, 5m, 1h30m or a number of seconds")

// parseDuration takes what time.ParseDuration takes, or a number of seconds.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		seconds, ok := decimal(s)
		if !ok {
			return 0, errDuration
		}
		seconds.Mul(seconds, big.NewRat(int64(time.Second), 1))
		n, ok := wholeNumber(seconds)
		if !ok {
			return 0, errors.New("is longer than a year")
		}
		d = time.Duration(n)
	}
	switch {
	case d < 0:
		return 0, errors.New("is negative")
	case d > maxDuration:
		return 0, errors.New("is longer than a year")
	}
	return d, nil
}

// decimal reads a number exactly, as binary floating point would not. Its
// exponent is bounded because the exact number has as many digits.
func decimal(s string) (*big.Rat, bool) {
	if len(s) > 40 || strings.ContainsAny(s, "/_xXoObBpP") {
		return nil, false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if e, err := strconv.Atoi(s[i+1:]); err != nil || e < -30 || e > 30 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(s)
}

// wholeNumber rounds down.
func wholeNumber(r *big.Rat) (int64, bool) {
	n := new(big.Int).Quo(r.Num(), r.Denom())
	return n.Int64(), n.IsInt64()
}

var errSize = errors.New("is not a size: write 64MiB, 512KiB, 4MB or a number of bytes")

// sizeUnits are tried in this order: each before the ones it ends in.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"kib", 1 << 10},
	{"mib", 1 << 20},
	{"gib", 1 << 30},
	{"kb", 1e3},
	{"mb", 1e6},
	{"gb", 1e9},
	{"b", 1},
	{"", 1},
}

func parseSize(s string) (int64, error) {
	lower := strings.ToLower(s)
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(lower, u.suffix)
		if !ok {
			continue
		}
		r, ok := decimal(strings.TrimSuffix(number, " "))
		if !ok {
			return 0, errSize
		}
		r.Mul(r, big.NewRat(u.bytes, 1))
		n, ok := wholeNumber(r)
		switch {
		case r.Sign() < 0:
			return 0, errors.New("is negative")
		case !ok || n > math.MaxInt64/2:
			return 0, errors.New("is too large")
		case !r.IsInt():
			return 0, errors.New("is not a whole number of bytes")
		}
		return n, nil
	}
	return 0, errSize
}

// Rate is so many in each period; zero is no limit.
type Rate struct {
	Count int
	Per   time.Duration
}

// IsZero reports whether there is no limit.
func (r Rate) IsZero() bool { return r.Count == 0 }

// String is the form of the file, as 100/m.
func (r Rate) String() string {
	switch r.Per {
	case time.Second:
		return strconv.Itoa(r.Count) + "/s"
	case time.Minute:
		return strconv.Itoa(r.Count) + "/m"
	case time.Hour:
		return strconv.Itoa(r.Count) + "/h"
	}
	return strconv.Itoa(r.Count) + "/" + r.Per.String()
}

var errRate = errors.New("is not a rate: write 10/s, 100/m or 1000/h")

func parseRate(s string) (Rate, error) {
	count, unit, _ := strings.Cut(s, "/")
	n, err := parseInt(count)
	if err != nil {
		return Rate{}, errRate
	}
	if n < 1 {
		return Rate{}, errors.New("allows nothing: the count must be at least 1")
	}
	switch unit {
	case "s":
		return Rate{n, time.Second}, nil
	case "m":
		return Rate{n, time.Minute}, nil
	case "h":
		return Rate{n, time.Hour}, nil
	}
	return Rate{}, errRate
}

var errInt = errors.New("is not a whole number")

// parseInt refuses what YAML would read in another base.
func parseInt(s string) (int, error) {
	digits := strings.TrimPrefix(s, "-")
	if len(digits) > 1 && digits[0] == '0' || strings.HasPrefix(s, "+") {
		return 0, errInt
	}
	n, err := strconv.Atoi(s)
	if errors.Is(err, strconv.ErrRange) || n > 1e9 {
		return 0, errors.New("is above 1000000000")
	}
	if err != nil {
		return 0, errInt
	}
	return n, nil
}

func parseBool(s string) (bool, error) {
	switch {
	case strings.EqualFold(s, "true"):
		return true, nil
	case strings.EqualFold(s, "false"):
		return false, nil
	}
	return false, errors.New("is neither true nor false")
}

func parseLevel(s string) (slog.Level, error) {
	switch strings.ToLower(s) {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn", "warning":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, errors.New("is not a level: write debug, info, warn or error")
}
