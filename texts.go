package holdfast

import "strings"

// prefix begins the text of every error of this package.
const prefix = "holdfast: "

// inner returns the text of an error, for use inside another error of this package. The prefix
// stands only at the start of the whole text. inner therefore cuts it off every error of this
// package that the text quotes.
func inner(err error) string {
	if err == nil {
		return "no cause"
	}
	text := err.Error()
	visit(err, func(part error) {
		if own, ok := strings.CutPrefix(part.Error(), prefix); ok {
			text = strings.ReplaceAll(text, prefix+own, own)
		}
	})
	return text
}

// visit calls f with an error and with all that it wraps, the outer errors first.
func visit(err error, f func(error)) {
	f(err)
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		if next := err.Unwrap(); next != nil {
			visit(next, f)
		}
	case interface{ Unwrap() []error }:
		for _, next := range err.Unwrap() {
			visit(next, f)
		}
	}
}

// A compound is one error that matches several.
type compound struct {
	text string
	errs []error
}

// compose makes one text of several errors.
func compose(between string, errs ...error) error {
	text := errs[0].Error()
	for _, err := range errs[1:] {
		text += between + inner(err)
	}
	return &compound{text, errs}
}

func (c *compound) Error() string { return c.text }

// Unwrap returns what the error matches.
func (c *compound) Unwrap() []error { return c.errs }
