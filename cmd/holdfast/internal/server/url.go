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

// A location is a parsed URL:
//
//	SCHEME://[USER:PASSWORD@]HOST[:PORT],.../PATH?OPTION&OPTION
//
// In a malformed URL, any part may be the password or a piece of it. So the error for such a URL
// says what was expected, and shows nothing of the URL except a known scheme.
type location struct {
	scheme  string
	user    *url.Userinfo // nil: none
	hosts   []string      // as given; none for a socket
	addrs   []string      // the same with ports
	path    string        // as given
	parts   []string      // of the path
	options []string      // as given
	query   url.Values
}

// A kind is the meaning of a scheme.
type kind struct {
	port    string // the default
	several bool   // several hosts are allowed
	socket  bool   // no host is allowed
}

var kinds = map[string]kind{
	"redis": {port: "6379"}, "rediss": {port: "6379"}, "unix": {socket: true},
	"redis+sentinel": {port: "26379", several: true}, "rediss+sentinel": {port: "26379", several: true},
	"redis+cluster": {port: "6379", several: true}, "rediss+cluster": {port: "6379", several: true},
}

const (
	notURL    = "it is not a URL: it must look like redis://HOST:PORT"
	notScheme = "its scheme is unknown: use redis, rediss, unix, redis+sentinel or redis+cluster (see holdfast help urls)"
	notHost   = "it must be HOST or HOST:PORT, and IPv6 in brackets"
	notLogin  = "user or password is not percent-encoded"

	notDatabase = "the database must be a number from 0 up"
)

// read parses a URL.
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
		return nil, l.badURL("a space, a control character and # must be percent-encoded")
	}
	rest, options, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	hosts := authority
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		u, err := url.Parse("redis://" + authority[:at] + "@host")
		if err != nil || u.User == nil {
			return nil, l.badURL(notLogin)
		}
		l.user, hosts = u.User, authority[at+1:]
	}
	if strings.Contains(path, "@") {
		return nil, l.badURL(notLogin)
	}
	if err := l.readHosts(hosts, k); err != nil {
		if strings.Contains(options, "@") {
			err = l.badURL(notLogin)
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
			return l.badURL("it has no host: it must look like unix:///PATH or unix://USER:PASSWORD@/PATH")
		}
		return nil
	}
	l.hosts = strings.Split(text, ",")
	if !k.several && len(l.hosts) > 1 {
		return l.badURL("it names more than one host: use redis+sentinel, redis+cluster, or a quorum with a URL for each server")
	}
	for i, host := range l.hosts {
		addr, why := address(host, k)
		switch {
		case why == "":
			l.addrs = append(l.addrs, addr)
		case k.several:
			return l.badURL(fmt.Sprintf("host %d of %d: %s", i+1, len(l.hosts), why))
		default:
			return l.badURL(why)
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
			return l.badURL("the path is not percent-encoded, or has an empty part")
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

// address adds the port if there is none. problem says what is wrong.
func address(host string, k kind) (addr, problem string) {
	if host == "" && k.several {
		return "", "it is empty"
	}
	name, port := host, k.port
	if at := strings.LastIndex(host, ":"); at > strings.LastIndex(host, "]") {
		name, port = host[:at], host[at+1:]
	}
	if name == "" && !k.several {
		name = "localhost"
	}
	const login = "; user and password end with @"
	literal, bracketed := strings.CutPrefix(name, "[")
	switch {
	case bracketed:
		literal = strings.Replace(strings.TrimSuffix(literal, "]"), "%25", "%", 1)
		if _, err := netip.ParseAddr(literal); err != nil || !strings.HasSuffix(name, "]") {
			return "", notHost + login
		}
	case strings.Contains(name, ":"):
		return "", notHost + login
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "the port must be 1 to 65535" + login
	}
	if !bracketed && (name == "" || strings.ContainsFunc(name, isUnusual)) {
		return "", "the name of a host has letters, digits, dots and hyphens" + login
	}
	return net.JoinHostPort(literal, port), ""
}

// isUnusual are characters that names of hosts do not have.
func isUnusual(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-", r)
}

func (l *location) badURL(text string) error { return fmt.Errorf("%s://...: %s", l.scheme, text) }

func (l *location) badOption(i int) error {
	return l.badURL(fmt.Sprintf("option %d of %d after the ? is unknown to go-redis, or its value is malformed; in a user or password, ? is %%3F", i+1, len(l.options)))
}

// parse gives the options to the parser of go-redis, except own. At first it gives one at a time:
// the errors of the parser quote the option. The host in these URLs is a dummy.
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
		return l.badURL("its options contradict each other")
	}
	return nil
}

func (l *location) login() (user, password string) {
	if l.user == nil {
		return "", ""
	}
	password, _ = l.user.Password()
	return l.user.Username(), password
}

// show is the URL without options, and with another user.
func (l *location) show(user string) string {
	text := l.scheme + "://" + user + strings.Join(l.hosts, ",")
	if l.path != "" {
		text += "/" + l.path
	}
	return text
}

// ParseURL parses redis://, rediss:// and unix:// URLs. Its errors show nothing of a URL except a
// known scheme.
func ParseURL(raw string) (*redis.Options, error) {
	l, err := read(raw)
	if err != nil {
		return nil, err
	}
	if kinds[l.scheme].several {
		return nil, l.badURL("it may name several servers: a URL of one is needed here, with redis, rediss or unix")
	}
	return l.oneServer(TLS{})
}

// form is what the scheme says of several servers: sentinel or cluster.
func (l *location) form() string {
	_, form, _ := strings.Cut(l.scheme, "+")
	return form
}

func (l *location) oneServer(files TLS) (options *redis.Options, err error) {
	if err = l.parse(func(text string) (err error) { options, err = redis.ParseURL(text); return err }); err != nil {
		return nil, err
	}
	options.Username, options.Password = l.login()
	database := 0
	switch socket := kinds[l.scheme].socket; {
	case socket && len(l.parts) == 0:
		return nil, l.badURL("it has no path: it must look like unix:///PATH")
	case socket:
		options.Addr = "/" + strings.Join(l.parts, "/")
	case len(l.parts) > 1:
		return nil, l.badURL("after the host, only a database number is allowed")
	default:
		options.Addr = l.addrs[0]
		if len(l.parts) == 1 {
			database, err = strconv.Atoi(l.parts[0])
		}
	}
	if err != nil || database < 0 || options.DB < 0 {
		return nil, l.badURL(notDatabase)
	}
	if l.query.Get("db") == "" {
		options.DB = database
	}
	options.ContextTimeoutEnabled, options.MaxRetries, options.DialerRetries = true, noRetries, oneDial
	host, _, _ := net.SplitHostPort(options.Addr)
	return options, files.into(options.TLSConfig, host)
}

// readAll parses a URL with its options.
func readAll(raw string) (*location, error) {
	l, err := read(raw)
	if err != nil {
		return nil, err
	}
	switch l.form() {
	case "sentinel":
		_, err = l.sentinel(TLS{})
	case "cluster":
		_, err = l.cluster(TLS{})
	default:
		_, err = l.oneServer(TLS{})
	}
	return l, err
}

// Redact returns a URL without user, passwords and options. It is safe to show. For a malformed
// URL, it returns a known scheme at most.
func Redact(raw string) string {
	if all, ok := forEachMember(raw, Redact); ok {
		return all
	}
	if l, err := readAll(raw); err == nil {
		user := ""
		if l.user != nil {
			user = "***@"
		}
		return l.show(user)
	}
	if scheme, _, ok := strings.Cut(raw, "://"); ok {
		if scheme = strings.ToLower(scheme); kinds[scheme] != (kind{}) {
			return scheme + "://..."
		}
	}
	return "..."
}

// WithoutPasswords returns a URL without its passwords, for other programs. The user stays.
func WithoutPasswords(raw string) string {
	if all, ok := forEachMember(raw, WithoutPasswords); ok {
		return all
	}
	l, err := readAll(raw)
	if err != nil {
		return Redact(raw)
	}
	user, _ := l.login()
	if user != "" {
		user = url.User(user).String() + "@"
	}
	text := l.show(user)
	shown := slices.DeleteFunc(slices.Clone(l.options), func(option string) bool {
		name, _, _ := strings.Cut(option, "=")
		name, _ = url.QueryUnescape(name)
		return strings.Contains(strings.ToLower(name), "password")
	})
	if len(shown) > 0 {
		text += "?" + strings.Join(shown, "&")
	}
	return text
}

// Address returns the address of the first host of a URL, and whether TLS is spoken to it. It is
// empty for a socket, and for a quorum.
func Address(raw string) (address string, encrypted bool) {
	l, err := read(raw)
	if err != nil || len(l.addrs) == 0 {
		return "", false
	}
	return l.addrs[0], strings.HasPrefix(l.scheme, "rediss")
}
