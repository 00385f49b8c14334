package mcp

// matchGlob reports whether the whole name matches the glob, in which * stands
// for any run of characters and ? for exactly one. Nothing else is special.
func matchGlob(glob, name string) bool {
	g, n := []rune(glob), []rune(name)
	i, j := 0, 0
	star, from := -1, 0 // the last star seen, and where its run began
	for j < len(n) {
		switch {
		case i < len(g) && g[i] == '*':
			star, from = i, j
			i++
		case i < len(g) && (g[i] == '?' || g[i] == n[j]):
			i++
			j++
		case star >= 0: // let the last star take one more
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(g) && g[i] == '*' {
		i++
	}
	return i == len(g)
}
