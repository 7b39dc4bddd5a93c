package server

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// replicaOptions are the options of go-redis that would send the requests of a lock to replicas.
var replicaOptions = []string{"read_only", "replica_only", "route_by_latency", "route_randomly",
	"use_disconnected_replicas", "shard_picker"}

// The options of all clients: a failure is reported at once.
const noRetries, oneDial = -1, 1

// refuseOptions refuses options by their names.
func (l *location) refuseOptions(why string, names ...string) error {
	if at := slices.IndexFunc(names, l.query.Has); at >= 0 {
		return l.badURL(fmt.Sprintf("option %s: %s", names[at], why))
	}
	return nil
}

// sentinel is redis+sentinel://[USER:PASSWORD@]HOST[:26379],.../MASTER[/DB]. User and password are
// those of the master. The options sentinel_username and sentinel_password are for the sentinels.
func (l *location) sentinel(files TLS) (options *redis.FailoverOptions, err error) {
	database := 0
	switch len(l.parts) {
	case 0:
		return nil, l.badURL("it has no master name: it must look like redis+sentinel://HOST,HOST/NAME")
	case 2:
		if database, err = strconv.Atoi(l.parts[1]); err != nil || database < 0 {
			return nil, l.badURL(notDatabase)
		}
	case 1:
	default:
		return nil, l.badURL("after the hosts, only the master name and a database number are allowed")
	}
	if err := l.refuseOptions("only a master can grant a lock", replicaOptions...); err != nil {
		return nil, err
	}
	if err := l.refuseOptions("another part of the URL says this", "master_name", "username", "password",
		"db"); err != nil {
		return nil, err
	}
	err = l.parse(func(text string) (err error) { options, err = redis.ParseFailoverURL(text); return err },
		"sentinel_username", "sentinel_password")
	if err != nil {
		return nil, err
	}
	options.SentinelAddrs, options.MasterName, options.DB = l.addrs, l.parts[0], database
	options.Username, options.Password = l.login()
	options.SentinelUsername, options.SentinelPassword = l.query.Get("sentinel_username"),
		l.query.Get("sentinel_password")
	options.ContextTimeoutEnabled, options.MaxRetries, options.DialerRetries = true, noRetries, oneDial
	return options, files.into(options.TLSConfig, "") // go-redis takes the name of each host
}

// cluster is redis+cluster://[USER:PASSWORD@]HOST[:6379],....
func (l *location) cluster(files TLS) (options *redis.ClusterOptions, err error) {
	if len(l.parts) > 0 {
		return nil, l.badURL("a cluster has no database numbers: nothing is allowed after the hosts")
	}
	if err := l.refuseOptions("only a master can grant a lock", replicaOptions...); err != nil {
		return nil, err
	}
	err = l.parse(func(text string) (err error) { options, err = redis.ParseClusterURL(text); return err })
	if err != nil {
		return nil, err
	}
	options.Addrs = l.addrs
	options.Username, options.Password = l.login()
	options.ContextTimeoutEnabled, options.MaxRetries, options.DialerRetries = true, noRetries, oneDial
	return options, files.into(options.TLSConfig, "") // go-redis takes the name of each host
}
