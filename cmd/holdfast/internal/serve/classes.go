package serve

import (
	"path"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// checkClasses notes a rule of --class that has no meaning.
func checkClasses(list *cli.Checklist, rules []string) {
	for _, rule := range rules {
		pattern, class, named := strings.Cut(rule, "=")
		_, err := path.Match(pattern, "")
		list.Check(rule != "" && (!named || pattern != "" && class != "" && err == nil),
			"--class %q: it must be PATTERN=CLASS, or a text that ends the class in a name, such as :", rule)
	}
}

// classFunc returns the Config.Class of rules: the first that fits a name gives its class. Without
// rules it is nil.
func classFunc(rules []string) func(string) string {
	if len(rules) == 0 {
		return nil
	}
	return func(name string) string {
		for _, rule := range rules {
			if pattern, class, named := strings.Cut(rule, "="); named {
				if matches(pattern, name) {
					return class
				}
			} else if class, _, found := strings.Cut(name, rule); found {
				return class
			}
		}
		return ""
	}
}

// matches reports whether a pattern matches a name. As with ls, and not as in a path, a star also
// stands for slashes.
func matches(pattern, name string) bool {
	plain := strings.NewReplacer("/", "\x00")
	ok, _ := path.Match(plain.Replace(pattern), plain.Replace(name))
	return ok
}
