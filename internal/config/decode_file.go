package config

import "slices"

// file reads the top of the tree.
func (d *decoder) file(root *node) *Config {
	cfg := Default()
	cfg.Name, cfg.Dir = d.name, d.dir
	o := field{d: d, n: root, line: root.line}.object()

	// The servers' defaults come from the bridge section.
	d.bridge(o.get("bridge"), &cfg.Bridge)

	servers, vscode := o.get("mcpServers"), o.get("servers")
	if servers.present() && vscode.present() {
		vscode.problem("is the same as mcpServers, in the words of VS Code; put all servers under one of them")
	}
	if !servers.present() {
		servers = vscode
	}
	entries := servers.object()
	entries.each(func(handle string, f field) {
		cfg.Servers = append(cfg.Servers, d.server(handle, f, &cfg.Bridge))
	})

	o.get("$schema")
	if inputs := o.get("inputs"); inputs.present() {
		d.warn(inputs.line, inputs.path, "has no effect: nobody is there to be asked; use ${NAME} and the environment")
	}
	o.unknown(func(key, path string, line int) {
		if isBridgeKey(key) {
			d.problem(line, path, "belongs under bridge:")
			return
		}
		d.problem(line, path, "unknown key%s", didYouMean(key, []string{"mcpServers", "servers", "bridge"}))
	})
	return cfg
}

// isBridgeKey reports whether the bridge section has such a key.
func isBridgeKey(key string) bool {
	d := &decoder{}
	o := &object{field: field{d: d}}
	b := DefaultBridge()
	d.bridgeKeys(o, &b)
	return slices.Contains(o.asked, key)
}
