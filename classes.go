package holdfast

import "sync"

// mostClasses is how many classes are told apart, and otherClass is that of all later ones.
const (
	mostClasses = 1000
	otherClass  = "other"
)

// classes bounds the classes that Config.Class makes of names. Nil makes none.
type classes struct {
	of func(name string) string

	mu   sync.RWMutex
	seen map[string]struct{}
}

func newClasses(of func(name string) string) *classes {
	if of == nil {
		return nil
	}
	return &classes{of: of, seen: make(map[string]struct{})}
}

// class is that of a name; empty: it has none.
func (c *classes) class(name string) string {
	if c == nil {
		return ""
	}
	class := c.of(name)
	c.mu.RLock()
	_, known := c.seen[class]
	full := len(c.seen) >= mostClasses
	c.mu.RUnlock()
	switch {
	case known || class == "":
		return class
	case full:
		return otherClass
	}
	return c.learn(class)
}

func (c *classes) learn(class string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.seen[class]; !known && len(c.seen) >= mostClasses {
		return otherClass
	}
	c.seen[class] = struct{}{}
	return class
}
