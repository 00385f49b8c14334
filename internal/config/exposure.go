package config

import "fmt"

// CheckExposure refuses to listen beyond loopback when callers cannot show who
// they are, since anybody who reaches the port could then run every tool. The
// command line's --insecure-no-auth (insecure) allows it. It also refuses an
// address that is not host:port.
func CheckExposure(listen string, hasAuth, insecure bool) error {
	if err := checkListen(listen); err != nil {
		return fmt.Errorf("listen: %q %w", listen, err)
	}
	if hasAuth || insecure || isLoopback(listen) {
		return nil
	}
	return fmt.Errorf("listen: %q can be reached from other machines, and nothing says who may call: "+
		"set bridge.auth.keys or bridge.auth.jwt, listen on 127.0.0.1, or allow it with --insecure-no-auth", listen)
}
