// Package doctor examines servers for what endangers the locks that they keep.
//
// A check looks at one thing at one server, and makes findings. A finding has a level:
//
//	ok        the check found nothing to change
//	note      worth knowing; no lock is endangered by it alone
//	danger    two holders, a lost lease, or a lock that nobody can take may come of it
//	unknown   the server does not say, and a danger may be behind that
//
// A check whose worst finding is a note says "note" where the server does not answer.
//
// The probes use keys and channels of their own under the prefix: PREFIX:doctor-RANDOM. They write
// few keys, for a few seconds, and delete each key that they named. The count and the time of all
// requests are bounded.
package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// A Level says how bad a finding is.
type Level string

// The levels of findings.
const (
	OK      Level = "ok"
	Note    Level = "note"
	Danger  Level = "danger"
	Unknown Level = "unknown"
)

// A Finding is what one check found at one server.
type Finding struct {
	Level  Level  `json:"level"`
	Check  string `json:"check"`
	Server string `json:"server"`
	Found  string `json:"found"`
	Means  string `json:"means,omitempty"`
	Change string `json:"change,omitempty"`
}

// A Report is what an examination found. Its JSON form is documented in docs/command.md.
type Report struct {
	Version    int       `json:"version"`    // of this form
	Endangered bool      `json:"endangered"` // a finding is a danger, or unknown
	Findings   []Finding `json:"findings"`
}

// Count returns how many findings are of a level.
func (r Report) Count(level Level) (n int) {
	for _, f := range r.Findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

// A Target is what to examine.
type Target struct {
	URL    string // of a server, a cluster, or a quorum
	TLS    server.TLS
	Prefix string        // of the keys and channels of the locks
	TTL    time.Duration // of the locks
}

const (
	wholeTime   = 30 * time.Second // of an examination
	requestTime = 4 * time.Second  // of one request
	atOnce      = 8                // servers that are examined at one time
)

// Examine examines all masters of a target. The error is that of the first contact: no server
// answers, or it refuses this client. Later failures are findings. If ctx ends, there is no report.
func Examine(ctx context.Context, target Target) (Report, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	e := &examination{target: target, prefix: target.Prefix + ":doctor-" + strings.ToLower(rand.Text()[:10])}
	var err error
	if members := server.Members(target.URL); members != nil {
		err = e.quorum(ctx, members)
	} else {
		err = e.examineOne(ctx)
	}
	if err := errors.Join(err, caller.Err()); err != nil {
		return Report{}, err
	}
	report := Report{Version: 1, Findings: e.findings}
	report.Endangered = report.Count(Danger)+report.Count(Unknown) > 0
	return report, nil
}

// An examination collects the findings at all servers.
type examination struct {
	target   Target
	prefix   string // of the probes
	findings []Finding
}

func (e *examination) add(level Level, check, server, found, means, change string) {
	e.findings = append(e.findings, Finding{level, check, server, found, means, change})
}

// examineOne examines a server, the master that sentinels name, or a cluster.
func (e *examination) examineOne(ctx context.Context) error {
	rdb, err := server.Connect(e.target.URL, e.target.TLS)
	if err != nil {
		return err
	}
	defer rdb.Close()
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		return e.cluster(ctx, cluster)
	}
	one, _ := rdb.(*redis.Client)
	p := e.newServerCheck(nameOf(e.target.URL, one), one)
	switch err := p.connect(ctx); {
	case err == nil:
		p.examine(ctx)
		if master, sentinels := server.Sentinels(e.target.URL, e.target.TLS); sentinels != nil {
			p.sentinels(ctx, master, sentinels)
		}
		p.locks(ctx, rdb)
		p.compareWithStart(ctx)
	case isAnswer(err) && strings.HasPrefix(err.Error(), "NOPERM"):
		p.permissions(ctx) // all that is missing, and not only this one
	default:
		return err
	}
	e.findings = p.findings
	return nil
}

// nameOf names a server for people: by its address, or if sentinels name it by the URL.
func nameOf(url string, rdb *redis.Client) string {
	if address := rdb.Options().Addr; address != "FailoverClient" { // as go-redis calls it
		return address
	}
	return server.Redact(url)
}

// A serverCheck is one master under examination. One goroutine at a time uses it.
type serverCheck struct {
	name     string // for people
	rdb      *redis.Client
	real     string            // prefix of the locks
	prefix   string            // of the probes
	tag      string            // of the probes' keys, in a slot that this master serves
	ttl      time.Duration     // of the locks
	cluster  bool              // a master of a cluster
	member   bool              // of a quorum
	info     infoText          // what INFO says
	noInfo   error             // why it says nothing
	denied   map[string]string // command -> why it is refused; nil: not known
	clock    clockReadings
	began    time.Time
	lags     map[string]replica // what replication was at first
	away     error              // of the first contact
	findings []Finding

	unconfirmed bool // no replica confirmed a write
}

func (e *examination) newServerCheck(name string, rdb *redis.Client) *serverCheck {
	return &serverCheck{name: name, rdb: rdb, real: e.target.Prefix, prefix: e.prefix, tag: "probe", ttl: e.target.TTL}
}

func (p *serverCheck) key() string { return p.prefix + ":{" + p.tag + "}" }

func (p *serverCheck) channel() string { return p.key() + ":@probe" }

func (p *serverCheck) add(level Level, check, found, means, change string) {
	p.findings = append(p.findings, Finding{level, check, p.name, found, means, change})
}

func (p *serverCheck) ok(check, found string) { p.add(OK, check, found, "", "") }

// note makes a finding that is ok if it is good, and otherwise a note.
func (p *serverCheck) note(good bool, check, found, means, change string) {
	if good {
		p.ok(check, found)
		return
	}
	p.add(Note, check, found, means, change)
}

// connect is the first contact. Its error says that the server is away or refuses this client.
func (p *serverCheck) connect(ctx context.Context) error {
	p.began = time.Now()
	return p.clock.read(ctx, p.rdb)
}

// examine runs the checks of one master. The clock is read before and after the others.
func (p *serverCheck) examine(ctx context.Context) {
	p.info, p.noInfo = p.askInfo(ctx, infoSections...)
	p.clock.readMany(ctx, p.rdb)
	p.version()
	p.eviction(ctx)
	p.memory()
	p.persistence(ctx)
	p.replication(ctx)
	p.permissions(ctx)
	p.messages(ctx)
	p.threads(ctx)
}

// compareWithStart runs the checks that compare the end with the beginning.
func (p *serverCheck) compareWithStart(ctx context.Context) {
	p.lag(ctx)
	p.checkMainThread(ctx)
	p.roundTrips()
	select { // a clock is judged by its way, which takes a while
	case <-time.After(time.Until(p.began.Add(clockWindow))):
	case <-ctx.Done():
	}
	p.clock.readMany(ctx, p.rdb)
	p.time()
}

// forEachServer examines several masters at one time, a few of them at once.
func forEachServer(checks []*serverCheck, do func(*serverCheck)) {
	var all sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, p := range checks {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			do(p)
		})
	}
	all.Wait()
}

// examineEach runs the checks of all masters, and more after them. A master that does not answer is
// a danger: away says of which check, and what it means. If none answers, that is the error.
func examineEach(ctx context.Context, checks []*serverCheck, away Finding, more func(*serverCheck)) (
	present []*serverCheck, err error,
) {
	forEachServer(checks, func(p *serverCheck) {
		if p.away = p.connect(ctx); p.away == nil {
			p.examine(ctx)
			more(p)
		}
	})
	for _, p := range checks {
		if p.away == nil {
			present = append(present, p)
			continue
		}
		p.add(Danger, away.Check, "no answer: "+errorText(p.away), away.Means, away.Change)
	}
	if len(present) == 0 && len(checks) > 0 {
		return nil, checks[0].away
	}
	return present, nil
}

func (p *serverCheck) do(ctx context.Context, args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return p.rdb.Do(ctx, args...).Result()
}

func (p *serverCheck) config(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	values, err := p.rdb.ConfigGet(ctx, name).Result()
	if err != nil {
		return "", err
	}
	value, ok := values[name]
	if !ok {
		return "", fmt.Errorf("CONFIG GET %s is empty", name)
	}
	return value, nil
}

func isAnswer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer) && !errors.Is(err, redis.Nil)
}

func errorText(err error) string {
	var late net.Error
	switch text := err.Error(); {
	case isAnswer(err):
		return "the server says: " + text
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return "no answer in time"
	default:
		return text
	}
}
