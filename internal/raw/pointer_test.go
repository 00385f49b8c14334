package raw

import "testing"

func TestAppendToken(t *testing.T) {
	for token, want := range map[string]string{"a": "/p/a", "": "/p/", "a/b": "/p/a~1b", "m~n": "/p/m~0n", "~1": "/p/~01", "~0/": "/p/~00~1"} {
		if got := AppendToken("/p", token); got != want {
			t.Errorf("AppendToken(/p, %q) = %q, want %q", token, got, want)
		}
	}
}
