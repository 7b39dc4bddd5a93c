package server

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// atMaster are options of go-redis that would send a lock's requests to replicas.
var atMaster = []string{"read_only", "replica_only", "route_by_latency", "route_randomly", "use_disconnected_replicas", "shard_picker"}

// without refuses options by their names.
func (l *location) without(why string, names ...string) error {
	if at := slices.IndexFunc(names, l.query.Has); at >= 0 {
		return l.bad(fmt.Sprintf("option %s: %s", names[at], why))
	}
	return nil
}

// sentinel is redis+sentinel://[USER:PASSWORD@]HOST[:26379],.../MASTER[/DB]. User and password are
// those of the
// master; the sentinels' own are the options sentinel_username and sentinel_password.
func (l *location) sentinel() (options *redis.FailoverOptions, err error) {
	database := 0
	switch len(l.parts) {
	case 0:
		return nil, l.bad("it has no master name: it must look like redis+sentinel://HOST,HOST/NAME")
	case 2:
		if database, err = strconv.Atoi(l.parts[1]); err != nil || database < 0 {
			return nil, l.bad(notDatabase)
		}
	case 1:
	default:
		return nil, l.bad("behind the hosts there may be the master name and a database number alone")
	}
	if err := l.without("locks are asked for at a master", atMaster...); err != nil {
		return nil, err
	}
	if err := l.without("it stands elsewhere in the URL", "master_name", "username", "password", "db"); err != nil {
		return nil, err
	}
	err = l.parse(func(text string) (err error) { options, err = redis.ParseFailoverURL(text); return err }, "sentinel_username", "sentinel_password")
	if err != nil {
		return nil, err
	}
	options.SentinelAddrs, options.MasterName, options.DB = l.addrs, l.parts[0], database
	options.Username, options.Password = l.login()
	options.SentinelUsername, options.SentinelPassword = l.query.Get("sentinel_username"), l.query.Get("sentinel_password")
	if options.TLSConfig != nil {
		options.TLSConfig.ServerName = "" // that of each host
	}
	return options, nil
}

// cluster is redis+cluster://[USER:PASSWORD@]HOST[:6379],....
func (l *location) cluster() (options *redis.ClusterOptions, err error) {
	if len(l.parts) > 0 {
		return nil, l.bad("a cluster has no database numbers: leave out what stands behind the hosts")
	}
	if err := l.without("locks are asked for at a master", atMaster...); err != nil {
		return nil, err
	}
	if err := l.parse(func(text string) (err error) { options, err = redis.ParseClusterURL(text); return err }); err != nil {
		return nil, err
	}
	options.Addrs = l.addrs
	options.Username, options.Password = l.login()
	if options.TLSConfig != nil {
		options.TLSConfig.ServerName = "" // that of each host
	}
	return options, nil
}
