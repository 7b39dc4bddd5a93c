package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// quorum examines each master of a quorum by itself, and then what endangers the majority.
func (e *examination) quorum(ctx context.Context, members []string) error {
	if err := server.Check(e.target.URL, e.target.TLS); err != nil {
		return err
	}
	var patients []*patient
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
		p := e.patient(nameOf(member, one), one)
		p.member = true
		patients = append(patients, p)
	}
	away := 0
	errs := make([]error, len(patients))
	each(patients, func(p *patient) {
		err := p.greet(ctx)
		if err == nil {
			p.examine(ctx)
			p.discharge(ctx)
		}
		errs[slices.Index(patients, p)] = err
	})
	for i, p := range patients {
		if errs[i] != nil {
			away++
			p.add(Danger, "quorum", "no answer: "+why(errs[i]), "one more failure may leave no majority: then no lock can be taken, and all leases are lost", "start it")
		}
	}
	if away == len(patients) {
		return errs[0]
	}
	for _, p := range patients {
		e.findings = append(e.findings, p.findings...)
	}
	e.twins(patients)
	e.births(ctx, patients)
	e.majority(ctx, patients)
	return nil
}

// What two URLs of one server mean, and what to change.
const (
	sameServer = "it counts once, so that fewer failures leave no majority"
	ownServer  = "give each URL a server of its own"
)

// twins finds masters that are one server, or on one machine.
func (e *examination) twins(patients []*patient) {
	add := func(p *patient, found, means, change string) {
		e.findings = append(e.findings, Finding{Danger, "quorum", p.name, found, means, change})
	}
	runs, hosts := map[string]*patient{}, map[string]*patient{}
	for _, p := range patients {
		run := p.info["run_id"]
		if twin := runs[run]; twin != nil && run != "" {
			add(p, "it is the same server as "+twin.name, sameServer, ownServer)
			continue
		}
		runs[run] = p
		host, _, err := net.SplitHostPort(p.rdb.Options().Addr)
		if err != nil {
			continue // a socket
		}
		if twin := hosts[host]; twin != nil {
			add(p, "it is on the host of "+twin.name, "one machine that dies takes two votes", "a machine of its own for each master")
			continue
		}
		hosts[host] = p
	}
}

// births asks which masters count, as holdfast quorum status does.
func (e *examination) births(ctx context.Context, patients []*patient) {
	const check = "quorum"
	all := server.Redact(e.target.URL)
	add := func(level Level, found, means, change string) {
		e.findings = append(e.findings, Finding{level, check, all, found, means, change})
	}
	ctx, cancel := context.WithTimeout(ctx, 2*requestTime)
	defer cancel()
	client, end, err := server.Client(e.target.URL, e.target.TLS, holdfast.Config{Prefix: e.target.Prefix})
	if err != nil {
		add(Unknown, "which masters count is not known: "+trimmed(err), "a master that restarted does not count", "")
		return
	}
	defer end()
	defer client.Close()
	nodes, err := client.Quorum(ctx)
	if err != nil {
		add(Unknown, "which masters count is not known: "+trimmed(err), "a master that restarted does not count", "")
		return
	}
	counting, need := 0, len(nodes)/2+1
	for i, n := range nodes {
		switch {
		case n.Counts:
			counting++
		case n.SameAs != "" && patients[i].info["run_id"] == "":
			add(Danger, n.Node+": "+n.Why, sameServer, ownServer)
		case n.SameAs != "": // twins has told
		case n.Err == nil:
			add(Danger, n.Node+" does not count: "+n.Why, "one more failure may leave no majority", "wait; if it cannot have forgotten a lock: holdfast quorum status --trust-new-nodes")
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

// majority measures a lock at all masters together.
func (e *examination) majority(ctx context.Context, patients []*patient) {
	const check = "lock"
	p := &patient{name: server.Redact(e.target.URL)}
	defer func() { e.findings = append(e.findings, p.findings...) }()
	probes := make([]*probe, 2)
	var recorders []*recorder
	for i := range probes {
		var stores []store.Store
		for _, one := range patients {
			if err := one.may("eval", "evalsha", "hset", "hdel", "hgetall", "del"); err != nil {
				p.add(Unknown, check, "not tried: "+err.Error()+" at "+one.name, "whether a lock can be taken is not known", "see permissions")
				return
			}
			rec := &recorder{Store: redisstore.New(one.rdb), prefix: e.prefix}
			recorders, stores = append(recorders, rec), append(stores, rec)
		}
		probes[i] = &probe{waiting: make(chan struct{}, 1)}
		config := probeConfig(e.prefix, probes[i].waiting)
		config.TrustNewNodes = true // nobody has ever locked under this prefix
		probes[i].client, probes[i].err = holdfast.NewQuorum(stores, config)
	}
	if err := p.compare(ctx, check, nil, probes[0], probes[1]); err != nil {
		p.add(Danger, check, "no lock could be taken: "+trimmed(err), "the programs cannot take one either", "see the findings above")
	}
	for _, probe := range probes {
		probe.close()
	}
	for i, rec := range recorders {
		remove(ctx, patients[i%len(patients)].rdb, rec.named())
	}
}
