package holdfast

import (
	"log/slog"
	"strings"
	"sync"
)

// mostClasses is how many classes are told apart, and otherClass is that of all later ones.
const (
	mostClasses = 1000
	otherClass  = "other"
)

// replacement stands for bytes that are no UTF-8.
const replacement = "\uFFFD"

// classes are those that Config.Class makes of names. Any client chooses the bytes of a name, and
// classes become labels of metrics in other programs. So a panic of Config.Class is caught here,
// its results are made valid UTF-8, and their number is bounded. Nil makes none.
type classes struct {
	of       func(name string) string
	logger   *slog.Logger
	panicked sync.Once // logged

	mu   sync.RWMutex
	seen map[string]struct{}
}

func newClasses(of func(name string) string, logger *slog.Logger) *classes {
	if of == nil {
		return nil
	}
	return &classes{of: of, logger: logger, seen: make(map[string]struct{})}
}

// class is that of a name; empty: it has none.
func (c *classes) class(name string) string {
	if c == nil {
		return ""
	}
	class := c.made(name)
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

// made calls Config.Class.
func (c *classes) made(name string) (class string) {
	defer func() {
		if panicked := recover(); panicked != nil {
			class = ""
			c.panicked.Do(func() {
				c.logger.Error("holdfast: Config.Class panicked", "name", shortened(name), "panic", panicked)
			})
		}
	}()
	return strings.ToValidUTF8(c.of(name), replacement)
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
