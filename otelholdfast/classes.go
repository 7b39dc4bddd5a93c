package otelholdfast

import "sync"

// most is how many classes are told apart.
const most = 1000

// other is the class of all names whose class is not among the first.
const other = "other"

// classes bounds the classes that a user's function makes.
type classes struct {
	of func(name string) string

	mu   sync.RWMutex
	seen map[string]struct{}
}

// class is that of a name. Empty: it has none.
func (c *classes) class(name string) string {
	class := c.of(name)
	if class == "" {
		return ""
	}
	c.mu.RLock()
	_, known := c.seen[class]
	full := len(c.seen) >= most
	c.mu.RUnlock()
	switch {
	case known:
		return class
	case full:
		return other
	}
	return c.learn(class)
}

func (c *classes) learn(class string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = make(map[string]struct{})
	}
	if _, known := c.seen[class]; !known && len(c.seen) >= most {
		return other
	}
	c.seen[class] = struct{}{}
	return class
}
