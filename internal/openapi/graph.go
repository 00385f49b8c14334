package openapi

import "maps"

// A target is a schema that a reference names, or the root: what occurs in it,
// and how big it becomes when references are replaced by what they name.
type target struct {
	schema *node
	name   string // what the reference calls it; empty for the root

	refs   map[*target]int  // :: target -> times that this one refers to it
	holds  []*target        // targets that stand in this one
	beside map[*target]bool // :: target -> true, if it applies to the very value that this one applies to
	own    int              // values in it that are in no other target

	cyclic bool // it occurs in itself
	hollow bool // it applies to the same value again and again, so that it means nothing
	cells  int  // values in it when every reference that is not cyclic is replaced
	height int  // levels, then, at most
}

// analyze finds all targets and what they are.
func (s *source) analyze() {
	s.target(s.root, "")
	seen := map[*node]bool{}
	for i := 0; i < len(s.order); i++ { // grows meanwhile
		s.discover(s.order[i].schema, seen)
	}
	for _, t := range s.order {
		s.scan(t, t.schema, true)
	}
	circles(s.order, func(t *target) []*target {
		next := append([]*target{}, t.holds...)
		for r := range t.refs {
			next = append(next, r)
		}
		return next
	}, func(t *target) { t.cyclic = true })
	circles(s.order, func(t *target) []*target {
		var next []*target
		for r := range maps.Keys(t.beside) {
			next = append(next, r)
		}
		return next
	}, func(t *target) { t.hollow = true })
	for _, t := range s.order {
		t.measure()
	}
}

func (s *source) target(n *node, name string) *target {
	t := s.targets[n]
	if t == nil {
		t = &target{schema: n, name: name, refs: map[*target]int{}, beside: map[*target]bool{}}
		s.targets[n] = t
		s.order = append(s.order, t)
	}
	return t
}

// discover makes targets of all that the references in n name.
func (s *source) discover(n *node, seen map[*node]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	if ref, ok := s.reference(n); ok {
		if r := s.resolve(n, ref); r != nil {
			s.to[n] = s.target(r, lastToken(ref))
		}
	}
	for _, sub := range s.subschemas(n) {
		s.discover(sub, seen)
	}
}

// scan notes what occurs in t, going down from n, which is a part of it; inPlace
// says whether n applies to the same value as t.
func (s *source) scan(t *target, n *node, inPlace bool) {
	if other := s.targets[n]; other != nil && other != t {
		t.holds = append(t.holds, other)
		if inPlace {
			t.beside[other] = true
		}
		return
	}
	t.own += n.cells
	if r := s.to[n]; r != nil {
		t.refs[r]++
		if inPlace {
			t.beside[r] = true
		}
	}
	for key, sub := range s.subschemas(n) {
		t.own -= sub.cells
		if key != "$defs" && key != "definitions" {
			s.scan(t, sub, inPlace && keywords[key].inPlace)
		}
	}
}

// manyCells is more than any schema may have; sums stop there.
const manyCells = 1 << 30

// measure computes the size of t. It goes from references to what they name, which
// ends since it does not follow cyclic ones.
func (t *target) measure() {
	if t.cells > 0 {
		return
	}
	t.cells, t.height = max(t.own, 1), t.schema.height
	add := func(r *target, times int) {
		r.measure()
		t.cells = min(t.cells+times*r.cells, manyCells)
		t.height = min(max(t.height, t.schema.height+r.height), manyCells)
	}
	for _, r := range t.holds {
		add(r, 1)
	}
	for r, times := range t.refs {
		if !r.cyclic && !r.hollow {
			add(r, times)
		}
	}
}

// expanded returns the size of the whole schema when only cyclic references are
// left, each with a component of its own, and the levels it then has.
func (s *source) expanded() (cells, height int) {
	for i, t := range s.order {
		if i == 0 || t.cyclic {
			cells, height = min(cells+t.cells, manyCells), max(height, t.height)
		}
	}
	return cells, height
}

// recursive reports whether a part of the schema occurs in itself.
func (s *source) recursive() bool {
	for _, t := range s.order {
		if t.cyclic {
			return true
		}
	}
	return false
}

// circles calls found for every target that can be reached from itself (Tarjan's
// algorithm for strongly connected components).
func circles(all []*target, next func(*target) []*target, found func(*target)) {
	index, low := map[*target]int{}, map[*target]int{}
	var stack []*target
	onStack := map[*target]bool{}
	var visit func(t *target)
	visit = func(t *target) {
		index[t] = len(index) + 1
		low[t] = index[t]
		stack, onStack[t] = append(stack, t), true
		self := false
		for _, n := range next(t) {
			self = self || n == t
			if index[n] == 0 {
				visit(n)
				low[t] = min(low[t], low[n])
			} else if onStack[n] {
				low[t] = min(low[t], index[n])
			}
		}
		if low[t] != index[t] {
			return
		}
		for i := len(stack) - 1; ; i-- {
			onStack[stack[i]] = false
			if stack[i] != t {
				found(stack[i])
				continue
			}
			if self || i < len(stack)-1 {
				found(t)
			}
			stack = stack[:i]
			return
		}
	}
	for _, t := range all {
		if index[t] == 0 {
			visit(t)
		}
	}
}
