package stdio

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "plain"))
	if got, want := do(t, c, request("echo", map[string]any{"a": 1})), `{"a":1}`; got != want {
		t.Errorf("got %s", got)
	}
	t.Log(received(t, c))
}
