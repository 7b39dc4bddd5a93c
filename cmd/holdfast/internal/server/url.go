package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/redis/go-redis/v9"
)

// A location is a URL that was read:
//
//	SCHEME://[USER:PASSWORD@]HOST[:PORT],.../PATH?OPTION&OPTION
//
// Where a part of a URL is not what belongs there, any part may be the password, or a piece of it.
// So the error of a URL that cannot be read shows nothing of it but a known scheme: it says what
// was expected.
type location struct {
	scheme  string
	user    *url.Userinfo // nil: none
	hosts   []string      // as they were written; of a socket none
	addrs   []string      // the same with ports
	path    string        // as it was written
	parts   []string      // of the path
	options []string      // as they were written
	query   url.Values
}

// A kind is what a scheme means.
type kind struct {
	port    string // the usual one
	several bool   // it may have several hosts
	socket  bool   // it has none
}

var kinds = map[string]kind{
	"redis": {port: "6379"}, "rediss": {port: "6379"}, "unix": {socket: true},
	"redis+sentinel": {port: "26379", several: true}, "rediss+sentinel": {port: "26379", several: true},
	"redis+cluster": {port: "6379", several: true}, "rediss+cluster": {port: "6379", several: true},
}

const (
	notURL    = "it is not a URL: it must look like redis://HOST:PORT"
	notScheme = "its scheme is unknown: use redis, rediss, unix, or, to run a command, redis+sentinel, redis+cluster"
	notLogin  = "user or password is not percent-encoded"

	notDatabase = "the database must be a number from 0 up"
)

// read reads a URL.
func read(raw string) (*location, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	l := &location{scheme: strings.ToLower(scheme)}
	k, known := kinds[l.scheme]
	switch {
	case !ok:
		return nil, errors.New(notURL)
	case !known:
		return nil, errors.New(notScheme)
	case strings.ContainsFunc(rest, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' }):
		return nil, l.bad("a space, a control character and # must be percent-encoded")
	}
	rest, options, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	hosts := authority
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		u, err := url.Parse("redis://" + authority[:at] + "@host")
		if err != nil || u.User == nil {
			return nil, l.bad(notLogin)
		}
		l.user, hosts = u.User, authority[at+1:]
	}
	if strings.Contains(path, "@") {
		return nil, l.bad(notLogin)
	}
	if err := l.readHosts(hosts, k); err != nil {
		if strings.Contains(options, "@") {
			err = l.bad(notLogin)
		}
		return nil, err
	}
	if err := l.readPath(path); err != nil {
		return nil, err
	}
	return l, l.readOptions(options)
}

func (l *location) readHosts(text string, k kind) error {
	if k.socket {
		if text != "" {
			return l.bad("it has no host: it must look like unix:///PATH or unix://USER:PASSWORD@/PATH")
		}
		return nil
	}
	l.hosts = strings.Split(text, ",")
	if !k.several && len(l.hosts) > 1 {
		return l.bad("it names more than one host: several are redis+sentinel, redis+cluster, or, each with a URL, a quorum")
	}
	for i, host := range l.hosts {
		addr, why := address(host, k)
		switch {
		case why == "":
			l.addrs = append(l.addrs, addr)
		case k.several:
			return l.bad(fmt.Sprintf("host %d of %d: %s", i+1, len(l.hosts), why))
		default:
			return l.bad(why)
		}
	}
	return nil
}

func (l *location) readPath(text string) error {
	l.path = text
	if text = strings.TrimSuffix(text, "/"); text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, "/") {
		plain, err := url.PathUnescape(part)
		if err != nil || plain == "" {
			return l.bad("the path is not percent-encoded, or has an empty part")
		}
		l.parts = append(l.parts, plain)
	}
	return nil
}

func (l *location) readOptions(text string) (err error) {
	if text != "" {
		l.options = strings.Split(text, "&")
	}
	for i, option := range l.options {
		if _, err := url.ParseQuery(option); err != nil {
			return l.badOption(i)
		}
	}
	l.query, _ = url.ParseQuery(text)
	return nil
}

// address adds the port where there is none; why says what is wrong.
func address(host string, k kind) (addr, why string) {
	if host == "" && !k.several {
		host = "localhost"
	}
	name, port := host, ":"+k.port
	if at := strings.LastIndex(host, ":"); at > strings.LastIndex(host, "]") {
		name, port = host[:at], host[at:]
	}
	literal, bracketed := strings.CutPrefix(name, "[")
	if bracketed {
		literal = strings.Replace(strings.TrimSuffix(literal, "]"), "%25", "%", 1)
	}
	_, err := netip.ParseAddr(literal)
	n, e := strconv.ParseUint(port[1:], 10, 16)
	switch {
	case host == "":
		return "", "it is empty"
	case bracketed && (err != nil || !strings.HasSuffix(name, "]")), strings.Contains(name, ":") && !bracketed:
		return "", "it must be HOST or HOST:PORT, and IPv6 in brackets; user and password end with @"
	case e != nil || n == 0:
		return "", "the port must be 1 to 65535; user and password end with @"
	case name == "" && !k.several:
		literal = "localhost"
	case !bracketed && (name == "" || strings.ContainsFunc(name, unusual)):
		return "", "the name of a host has letters, digits, dots and hyphens; user and password end with @"
	}
	return net.JoinHostPort(literal, port[1:]), ""
}

// unusual are what names of hosts have not.
func unusual(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-", r)
}

// bad is an error of a URL that cannot be read.
func (l *location) bad(text string) error { return fmt.Errorf("%s://...: %s", l.scheme, text) }

func (l *location) badOption(i int) error {
	return l.bad(fmt.Sprintf("option %d of %d behind the ? is not one of go-redis, or its value is none; in a user or password ? is %%3F", i+1, len(l.options)))
}

// parse gives the options that are go-redis's own to its parser, at first one by one: its errors
// quote what they are about. The host is a stand-in.
func (l *location) parse(parser func(text string) error, own ...string) error {
	scheme, _, _ := strings.Cut(l.scheme, "+")
	text := scheme + "://host:1"
	if kinds[l.scheme].socket {
		text = scheme + ":///path"
	}
	query := url.Values{}
	for i, option := range l.options {
		name, value, _ := strings.Cut(option, "=")
		name, _ = url.QueryUnescape(name)
		if slices.Contains(own, name) {
			continue
		}
		if parser(text+"?"+option) != nil || name == "addr" {
			return l.badOption(i)
		}
		value, _ = url.QueryUnescape(value)
		query.Add(name, value)
	}
	if parser(text+"?"+query.Encode()) != nil {
		return l.bad("its options cannot be read")
	}
	return nil
}

// login is the user and the password.
func (l *location) login() (user, password string) {
	if l.user == nil {
		return "", ""
	}
	password, _ = l.user.Password()
	return l.user.Username(), password
}

// String is the URL without user, password and options, fit to be shown.
func (l *location) String() string {
	text := l.scheme + "://"
	if l.user != nil {
		text += "***@"
	}
	text += strings.Join(l.hosts, ",")
	if l.path != "" {
		text += "/" + l.path
	}
	return text
}

// ParseURL reads redis://, rediss:// and unix:// URLs. Its errors show no part of a URL but a known
// scheme.
func ParseURL(raw string) (*redis.Options, error) {
	l, err := read(raw)
	if err != nil {
		return nil, err
	}
	if kinds[l.scheme].several {
		return nil, l.bad("it may name several servers: here a URL of one is needed, redis, rediss or unix")
	}
	return l.one()
}

func (l *location) one() (options *redis.Options, err error) {
	if err = l.parse(func(text string) (err error) { options, err = redis.ParseURL(text); return err }); err != nil {
		return nil, err
	}
	options.Username, options.Password = l.login()
	database := 0
	switch socket := kinds[l.scheme].socket; {
	case socket && len(l.parts) == 0:
		return nil, l.bad("it has no path: it must look like unix:///PATH")
	case socket:
		options.Addr = "/" + strings.Join(l.parts, "/")
	case len(l.parts) > 1:
		return nil, l.bad("behind the host there may be a database number alone")
	default:
		options.Addr = l.addrs[0]
		if len(l.parts) == 1 {
			database, err = strconv.Atoi(l.parts[0])
		}
	}
	if err != nil || database < 0 || options.DB < 0 {
		return nil, l.bad(notDatabase)
	}
	if l.query.Get("db") == "" {
		options.DB = database
	}
	if options.TLSConfig != nil {
		options.TLSConfig.ServerName, _, _ = net.SplitHostPort(options.Addr)
	}
	return options, nil
}

// readAll reads a URL and refuses it where no server could be made of it.
func readAll(raw string) (*location, error) {
	l, err := read(raw)
	if err != nil {
		return nil, err
	}
	switch _, form, _ := strings.Cut(l.scheme, "+"); form {
	case "sentinel":
		_, err = l.sentinel()
	case "cluster":
		_, err = l.cluster()
	default:
		_, err = l.one()
	}
	return l, err
}

// Redact is a URL without user, passwords and options, fit to be shown. Of one that cannot be read
// it is the scheme at most.
func Redact(raw string) string {
	if all, ok := each(raw, Redact); ok {
		return all
	}
	if l, err := readAll(raw); err == nil {
		return l.String()
	}
	if scheme, _, ok := strings.Cut(raw, "://"); ok {
		if scheme = strings.ToLower(scheme); kinds[scheme] != (kind{}) {
			return scheme + "://..."
		}
	}
	return "..."
}

// Open is a URL without its passwords, fit to be given to a program: the user stays, for who needs
// to know which.
func Open(raw string) string {
	if all, ok := each(raw, Open); ok {
		return all
	}
	l, err := readAll(raw)
	if err != nil {
		return Redact(raw)
	}
	text := l.scheme + "://"
	if user, _ := l.login(); user != "" {
		text += url.User(user).String() + "@"
	}
	text += strings.Join(l.hosts, ",")
	if l.path != "" {
		text += "/" + l.path
	}
	open := slices.DeleteFunc(slices.Clone(l.options), func(option string) bool {
		name, _, _ := strings.Cut(option, "=")
		name, _ = url.QueryUnescape(name)
		return strings.Contains(strings.ToLower(name), "password")
	})
	if len(open) > 0 {
		text += "?" + strings.Join(open, "&")
	}
	return text
}
