package server

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// atMaster are options of go-redis that would send a lock's requests to replicas.
var atMaster = []string{"read_only", "replica_only", "route_by_latency", "route_randomly", "use_disconnected_replicas", "shard_picker"}

// A many is a URL that names several servers: SCHEME://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT].../PATH?QUERY.
type many struct {
	public string // fit to be shown
	tls    bool
	user   *url.Userinfo
	hosts  []string // with ports
	path   []string
	query  url.Values
}

// parseMany reads one. Its errors say which part is wrong and never hold a password.
func parseMany(raw, port string) (*many, error) {
	m := &many{public: Redact(raw)}
	bad := func(format string, args ...any) (*many, error) {
		return nil, fmt.Errorf("%q: %s", m.public, fmt.Sprintf(format, args...))
	}
	scheme, rest, _ := strings.Cut(raw, "://")
	m.tls = strings.HasPrefix(strings.ToLower(scheme), "rediss+")
	// User and password reach to the last "@", as in split, but for one in a password among the options.
	open := hidden.ReplaceAllString(rest, "${1}")
	if at := strings.LastIndex(open, "@"); at >= 0 {
		u, err := url.Parse("redis://" + open[:at] + "@host")
		if err != nil || !strings.HasPrefix(rest, open[:at+1]) {
			return bad("user or password is not percent-encoded")
		}
		m.user, rest = u.User, rest[at+1:]
	}
	rest, text, _ := strings.Cut(rest, "?")
	hosts, path, _ := strings.Cut(rest, "/")
	list := strings.Split(hosts, ",")
	for i, host := range list {
		addr, why := address(host, port)
		if why != "" {
			if !strings.Contains(m.public, host) { // what is hidden there was taken for a host
				return bad("host %d of %d is none", i+1, len(list))
			}
			return bad("host %d of %d, %q: %s", i+1, len(list), host, why)
		}
		m.hosts = append(m.hosts, addr)
	}
	if path = strings.TrimSuffix(path, "/"); path != "" {
		for _, part := range strings.Split(path, "/") {
			plain, err := url.PathUnescape(part)
			if err != nil || plain == "" {
				return bad("path %q is not percent-encoded, or has an empty part", path)
			}
			m.path = append(m.path, plain)
		}
	}
	var err error
	if m.query, err = url.ParseQuery(text); err != nil {
		return bad("the options behind \"?\" are not percent-encoded")
	}
	for _, option := range atMaster {
		if m.query.Has(option) {
			return bad("option %s: locks are asked for at a master", option)
		}
	}
	for _, option := range []string{"addr", "master_name"} {
		if m.query.Has(option) {
			return bad("unexpected option: %s", option)
		}
	}
	return m, nil
}

// address adds the port where there is none; why says what is wrong.
func address(host, port string) (addr, why string) {
	if host == "" {
		return "", "it is empty"
	}
	h, p, err := net.SplitHostPort(host)
	if err != nil {
		h, p = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), port
		if strings.Contains(h, ":") && h == host {
			return "", "it must be HOST or HOST:PORT, and IPv6 in brackets"
		}
	}
	if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
		return "", fmt.Sprintf("port %q is none: 1 to 65535", p)
	}
	if h == "" || strings.ContainsAny(h, "[]@ \t\n") {
		return "", "it has no name or address"
	}
	return net.JoinHostPort(h, p), ""
}

// simple is the same for the parsers of go-redis: the first host, the others as options, without user and password.
func (m *many) simple() string {
	scheme := "redis://"
	if m.tls {
		scheme = "rediss://"
	}
	query := url.Values{}
	for key, values := range m.query {
		query[key] = values
	}
	query["addr"] = m.hosts[1:]
	return scheme + m.hosts[0] + "?" + query.Encode()
}

// login is the user and the password.
func (m *many) login() (user, password string) {
	if m.user == nil {
		return "", ""
	}
	password, _ = m.user.Password()
	return m.user.Username(), password
}

// complaint is what go-redis says of a host or an option; not the URL that it read, which has passwords among its options.
func (m *many) complaint(err error) error {
	var broken *url.Error
	if errors.As(err, &broken) {
		err = broken.Err
	}
	return fmt.Errorf("%q: %s", m.public, strings.TrimPrefix(err.Error(), "redis: "))
}

// parseSentinel reads redis+sentinel://[USER:PASSWORD@]HOST[:26379],.../MASTER[/DB]. User and password are those of the
// master; the sentinels' own are the options sentinel_username and sentinel_password.
func parseSentinel(raw string) (*redis.FailoverOptions, error) {
	m, err := parseMany(raw, "26379")
	if err != nil {
		return nil, err
	}
	database := 0
	switch len(m.path) {
	case 0:
		return nil, fmt.Errorf("%q has no master name: redis+sentinel://HOST,HOST/NAME", m.public)
	case 2:
		if database, err = strconv.Atoi(m.path[1]); err != nil || database < 0 {
			return nil, fmt.Errorf("%q: database number: %q", m.public, m.path[1])
		}
	case 1:
	default:
		return nil, fmt.Errorf("%q: behind the hosts there may be the master name and a database number alone", m.public)
	}
	user, password := m.query.Get("sentinel_username"), m.query.Get("sentinel_password")
	m.query.Del("sentinel_username")
	m.query.Del("sentinel_password")
	for _, option := range []string{"username", "password", "db"} {
		if m.query.Has(option) {
			return nil, fmt.Errorf("%q: unexpected option: %s", m.public, option)
		}
	}
	options, err := redis.ParseFailoverURL(m.simple())
	if err != nil {
		return nil, m.complaint(err)
	}
	options.MasterName, options.DB = m.path[0], database
	options.Username, options.Password = m.login()
	options.SentinelUsername, options.SentinelPassword = user, password
	if options.TLSConfig != nil {
		options.TLSConfig.ServerName = "" // that of each host
	}
	return options, nil
}

// parseCluster reads redis+cluster://[USER:PASSWORD@]HOST[:6379],....
func parseCluster(raw string) (*redis.ClusterOptions, error) {
	m, err := parseMany(raw, "6379")
	if err != nil {
		return nil, err
	}
	if len(m.path) > 0 {
		return nil, fmt.Errorf("%q: a cluster has no database numbers: leave out %q", m.public, "/"+strings.Join(m.path, "/"))
	}
	options, err := redis.ParseClusterURL(m.simple())
	if err != nil {
		return nil, m.complaint(err)
	}
	options.Username, options.Password = m.login()
	if options.TLSConfig != nil {
		options.TLSConfig.ServerName = "" // that of each host
	}
	return options, nil
}
