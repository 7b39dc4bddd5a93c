package server

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ParseURL reads redis://, rediss:// and unix:// URLs. Its errors say which part is wrong and never hold the user or
// the password: parsers like to quote what they do not understand, so the rest is parsed first without them.
func ParseURL(raw string) (*redis.Options, error) {
	public := Redact(raw)
	bare, secret := split(raw)
	if !strings.Contains(bare, "://") {
		return nil, fmt.Errorf("%q is not a URL: it must look like redis://HOST:PORT", public)
	}
	u, err := url.Parse(bare)
	if err != nil {
		var broken *url.Error
		if errors.As(err, &broken) {
			err = broken.Err
		}
		return nil, fmt.Errorf("%q is not a URL: %w", public, err)
	}
	switch u.Scheme {
	case "redis", "rediss", "unix":
	default:
		return nil, fmt.Errorf("%q has the scheme %s: use redis, rediss, unix, or, to run a command, redis+sentinel, redis+cluster", public, u.Scheme)
	}
	if strings.Contains(u.Host, ",") {
		return nil, fmt.Errorf("%q names more than one host: several are redis+sentinel, redis+cluster, or, each with a URL, a quorum", public)
	}
	if n, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || n < 1 || n > 65535) {
		return nil, fmt.Errorf("%q: port %q is none: 1 to 65535", public, u.Port())
	}
	if options, err := redis.ParseURL(bare); err != nil {
		return nil, fmt.Errorf("%q: %s", public, strings.TrimPrefix(err.Error(), "redis: "))
	} else if options.DB < 0 {
		return nil, fmt.Errorf("%q: invalid database number: \"%d\"", public, options.DB)
	}
	options, err := redis.ParseURL(raw)
	if err != nil && secret {
		return nil, fmt.Errorf("%q: user or password is not percent-encoded", public)
	}
	return options, err
}

// hidden is an option whose value is a password.
var hidden = regexp.MustCompile(`(?i)([?&][^=&]*password[^=&]*=)[^&]*`)

// Redact is the URL without user and passwords, fit to be shown.
func Redact(raw string) string {
	if all, ok := each(raw, Redact); ok {
		return all
	}
	bare, secret := split(hidden.ReplaceAllStringFunc(raw, func(option string) string {
		name, value, _ := strings.Cut(option, "=")
		if strings.Contains(value, "@") { // it may be what ends a password that looks like an option
			return name + "=***@***"
		}
		return name + "=***"
	}))
	if !secret {
		return bare
	}
	if scheme, rest, ok := strings.Cut(bare, "://"); ok {
		return scheme + "://***@" + rest
	}
	return "***@" + bare
}

// split takes user and password out of a URL that may be broken: everything between the scheme and the last "@". That
// is too much where an "@" stands in the query, and then too little is shown, never too much.
func split(raw string) (bare string, secret bool) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if ok && !strings.Contains(scheme, "@") {
		scheme += "://"
	} else {
		scheme, rest = "", raw
	}
	at := strings.LastIndex(rest, "@")
	return scheme + rest[at+1:], at >= 0
}
