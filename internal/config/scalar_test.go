package config

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"300ms": 300 * time.Millisecond, "20s": 20 * time.Second, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute,
		"0": 0, "20": 20 * time.Second, "0.25": 250 * time.Millisecond, ".5": 500 * time.Millisecond, "1.5s": 1500 * time.Millisecond,
		"1e2": 100 * time.Second, "1E-3": time.Millisecond, "0.1": 100 * time.Millisecond, "8760h": 8760 * time.Hour, "1e-30": 0,
	} {
		if got, err := parseDuration(text); got != want || err != nil {
			t.Errorf("parseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "s", "20 s", "1d", "-1", "-1s", "1/2", "0x10", "1_000", "Inf", "NaN", "1e", "1e31", "1e999999999", "1e30", "8761h", "2000000h",
		"1111111111111111111111111111111111111111111111111",
	} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("parseDuration(%q) = %v, want an error", text, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "64MiB": 64 << 20, "4MB": 4e6, "512 KiB": 512 << 10, "1.5GiB": 3 << 29, "2gb": 2e9, "10B": 10, "1kB": 1000, "1e3": 1000, "0.5KiB": 512,
	} {
		if got, err := parseSize(text); got != want || err != nil {
			t.Errorf("parseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "4M", "4 M", "64  MiB", "-1", "1.5", "1.0001KB", "9e18", "1e20", "99999999999GiB", "0x10", "1TB", "ten", "1 /2B"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", text, got)
		}
	}
}

func TestParseRate(t *testing.T) {
	for _, text := range []string{"10/s", "100/m", "1000/h"} {
		if r, err := parseRate(text); err != nil || r.String() != text || r.IsZero() {
			t.Errorf("parseRate(%q) = %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "10", "/s", "10/", "0/s", "-1/s", "1.5/s", "10/sec", "10 / s", "10000000000/s", "1/s/s"} {
		if r, err := parseRate(text); err == nil {
			t.Errorf("parseRate(%q) = %v, want an error", text, r)
		}
	}
	if s := (Rate{Count: 5, Per: 2 * time.Second}).String(); s != "5/2s" {
		t.Errorf("String = %q", s)
	}
	if !(Rate{}).IsZero() {
		t.Error("the zero rate is a limit")
	}
}

func TestParseInt(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "-5": -5, "1000000000": 1e9} {
		if n, err := parseInt(text); n != want || err != nil {
			t.Errorf("parseInt(%q) = %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"", "-", "+1", "01", "-01", "1e3", "1_000", "0x1", "1000000001", "99999999999999999999"} {
		if n, err := parseInt(text); err == nil {
			t.Errorf("parseInt(%q) = %d, want an error", text, n)
		}
	}
}

func TestParseLevel(t *testing.T) {
	for _, text := range []string{"debug", "info", "warn", "warning", "error", "INFO"} {
		if _, err := parseLevel(text); err != nil {
			t.Errorf("parseLevel(%q) = %v", text, err)
		}
	}
}

func TestJSONNumber(t *testing.T) {
	for text, want := range map[string]string{
		"1.10": "1.10", "1e400": "1e400", "9007199254740993": "9007199254740993",
		"0x10": "16", "0o17": "15", "1_000": "1000", ".5": "0.5", "+1": "1", "1.": "1",
	} {
		if got, err := jsonNumber(text); got != want || err != nil {
			t.Errorf("jsonNumber(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{".inf", "-.inf", ".nan", "Inf", "", "+1e999"} {
		if got, err := jsonNumber(text); err == nil {
			t.Errorf("jsonNumber(%q) = %q, want an error", text, got)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"lisen", "listen", 1}, {"kitten", "sitting", 3}, {"abc", "abc", 0}} {
		if got := editDistance(tc.a, tc.b); got != tc.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}
