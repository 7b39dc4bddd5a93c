package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/store"
)

// quorum examines each master of a quorum by itself, and then what endangers the majority.
func (e *examination) quorum(ctx context.Context, members []string) error {
	if err := server.Check(e.target.URL, e.target.TLS); err != nil {
		return err
	}
	var checks []*serverCheck
	for _, member := range members {
		rdb, err := server.Connect(member, e.target.TLS)
		if err != nil {
			return err
		}
		defer rdb.Close()
		one, ok := rdb.(*redis.Client)
		if !ok {
			return errors.New("a master of a quorum is a single server")
		}
		p := e.newServerCheck(nameOf(member, one), one)
		p.member = true
		checks = append(checks, p)
	}
	away := Finding{Check: "quorum", Change: "start it",
		Means: "one more failure may leave no majority: then no lock can be taken, and all leases are lost"}
	if _, err := examineEach(ctx, checks, away, func(p *serverCheck) { p.compareWithStart(ctx) }); err != nil {
		return err
	}
	for _, p := range checks {
		e.findings = append(e.findings, p.findings...)
	}
	e.findTwins(checks)
	e.checkCounting(ctx, checks)
	e.measureMajority(ctx, checks)
	return nil
}

// What two URLs of one server mean, and what to change.
const (
	sameServer = "it counts once, so that fewer failures leave no majority"
	ownServer  = "give each URL a server of its own"
)

// findTwins finds masters that are one server, or on one machine.
func (e *examination) findTwins(checks []*serverCheck) {
	runs, hosts := map[string]*serverCheck{}, map[string]*serverCheck{}
	for _, p := range checks {
		run := p.info["run_id"]
		if twin := runs[run]; twin != nil && run != "" {
			e.add(Danger, "quorum", p.name, "it is the same server as "+twin.name, sameServer, ownServer)
			continue
		}
		runs[run] = p
		host, _, err := net.SplitHostPort(p.rdb.Options().Addr)
		if err != nil {
			continue // a socket
		}
		if twin := hosts[host]; twin != nil {
			e.add(Danger, "quorum", p.name, "it is on the host of "+twin.name, "one machine that dies takes two votes",
				"a machine of its own for each master")
			continue
		}
		hosts[host] = p
	}
}

// checkCounting asks which masters count, as holdfast quorum status does.
func (e *examination) checkCounting(ctx context.Context, checks []*serverCheck) {
	all := server.Redact(e.target.URL)
	add := func(level Level, found, means, change string) { e.add(level, "quorum", all, found, means, change) }
	ctx, cancel := context.WithTimeout(ctx, 2*requestTime)
	defer cancel()
	client, end, err := server.Client(e.target.URL, e.target.TLS, holdfast.Config{Prefix: e.target.Prefix})
	var nodes []lockinfo.Master
	if err == nil {
		defer end()
		defer client.Close()
		nodes, err = client.Quorum(ctx)
	}
	if err != nil {
		add(Unknown, "which masters count is not known: "+trimError(err), "a master that restarted does not count", "")
		return
	}
	counting, need := 0, len(nodes)/2+1
	for i, n := range nodes {
		switch {
		case n.Counts:
			counting++
		case n.SameAs != "" && checks[i].info["run_id"] == "":
			add(Danger, n.Node+": "+n.Why, sameServer, ownServer)
		case n.SameAs != "": // twins has told
		case n.Err == nil:
			add(Danger, n.Node+" does not count: "+n.Why, "one more failure may leave no majority",
				"wait; if it cannot have forgotten a lock: holdfast quorum status --trust-new-nodes")
		}
	}
	switch found := fmt.Sprintf("%d of %d masters count, %d are a majority", counting, len(nodes), need); {
	case counting < need:
		add(Danger, found, "no lock can be taken or renewed", "start the others")
	case counting == need && len(nodes) > need:
		add(Danger, found, "the next failure ends all leases", "start the others")
	default:
		add(OK, found, "", "")
	}
}

// measureMajority measures a lock at all masters together.
func (e *examination) measureMajority(ctx context.Context, checks []*serverCheck) {
	p := e.newServerCheck(server.Redact(e.target.URL), nil)
	defer func() { e.findings = append(e.findings, p.findings...) }()
	for _, one := range checks {
		if err := one.checkCommands("eval", "evalsha", "hset", "hdel", "hgetall", "del"); err != nil {
			p.notTried(err.Error() + " at " + one.name)
			return
		}
	}
	p.tryLocks(ctx, nil, func(newStore storeSource, config *holdfast.Config) (*holdfast.Client, error) {
		var stores []store.Store
		for _, one := range checks {
			stores = append(stores, newStore(one.rdb))
		}
		config.TrustNewNodes = true // nobody has ever locked under this prefix
		return holdfast.NewQuorum(stores, config)
	})
}
