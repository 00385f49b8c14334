package rpc

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for in, want := range map[time.Duration]string{
		0:                          "0s",
		time.Nanosecond:            "1ns",
		100 * time.Millisecond:     "100ms",
		123456 * time.Microsecond:  "123ms",
		999_999 * time.Microsecond: "1s",
		2999902308:                 "3s",
		1_449_999_999:              "1.4s",
		29_999_999_999:             "30s",
		10 * time.Second:           "10s",
		89_600 * time.Millisecond:  "1m30s",
		20 * time.Minute:           "20m",
		time.Hour:                  "1h",
		70 * time.Minute:           "1h10m",
		time.Hour + time.Second:    "1h0m1s",
	} {
		if got := Duration(in); got != want {
			t.Errorf("Duration(%d) = %s, want %s", in, got, want)
		}
	}
}
