// Package classes bounds and checks the classes that a user's function makes of names.
package classes

import (
	"log/slog"
	"strings"
	"sync"
)

// maxClasses is how many classes are told apart, and otherClass is that of all later ones.
const (
	maxClasses = 1000
	otherClass = "other"
)

// replacement stands for bytes that are no UTF-8.
const replacement = "\uFFFD"

// Classes are those that Config.Class makes of names. Any client chooses the bytes of a name, and
// classes become labels of metrics in other programs. So a panic of Config.Class is caught here,
// its results are made valid UTF-8, and their number is bounded. Nil makes none.
type Classes struct {
	make     func(name string) string
	logger   *slog.Logger
	panicked sync.Once // logged

	mu    sync.RWMutex
	known map[string]struct{}
}

// New returns the classes that a function makes, and nil if there is none.
func New(makeClass func(name string) string, logger *slog.Logger) *Classes {
	if makeClass == nil {
		return nil
	}
	return &Classes{make: makeClass, logger: logger, known: make(map[string]struct{})}
}

// Of returns the class of a name; empty if it has none.
func (c *Classes) Of(name string) string {
	if c == nil {
		return ""
	}
	class := c.makeClass(name)
	c.mu.RLock()
	_, known := c.known[class]
	full := len(c.known) >= maxClasses
	c.mu.RUnlock()
	switch {
	case known || class == "":
		return class
	case full:
		return otherClass
	}
	return c.addClass(class)
}

func (c *Classes) makeClass(name string) (class string) {
	defer func() {
		if panicked := recover(); panicked != nil {
			class = ""
			c.panicked.Do(func() {
				c.logger.Error("holdfast: Config.Class panicked", "name", name[:min(len(name), 64)], "panic", panicked)
			})
		}
	}()
	return strings.ToValidUTF8(c.make(name), replacement)
}

func (c *Classes) addClass(class string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.known[class]; !known && len(c.known) >= maxClasses {
		return otherClass
	}
	c.known[class] = struct{}{}
	return class
}
