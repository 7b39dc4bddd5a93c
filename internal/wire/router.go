package wire

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/store"
)

const (
	// maxRedirects is how often one Do sends a request again, after MOVED, ASK, or unsent.
	maxRedirects = 3

	// waitMargin bounds a request that waits for replicas and has no deadline, on top of the time
	// that it gives them.
	waitMargin = 10 * time.Second
)

// A router is the Store on what an adapter brings. On a cluster it has a slot table of its own: a
// WAIT must go where its write went, and clients do not say where that is.
type router struct {
	store *renewingStore
	kind  atomic.Int32 // a kind of servers; it does not change once it is known
	slots slotTables   // of a cluster; guards itself

	mu            sync.Mutex
	subscriptions map[*subscription]bool // those that are not closed
}

// The kinds of servers behind a store.
const (
	kindUnknown int32 = iota
	kindSingle
	kindCluster
)

// Route makes a Store of what an adapter brings. It sends nothing.
func Route(s store.Store) Store {
	r := &router{subscriptions: map[*subscription]bool{}}
	r.store = &renewingStore{Store: s, nodes: map[string]*renewedNode{}, found: r.reconnect}
	r.slots.store = r.store
	return r
}

// isCluster reports whether keys are spread over slots. It asks the store until it is known.
func (r *router) isCluster(ctx context.Context) (bool, error) {
	if kind := r.kind.Load(); kind != kindUnknown {
		return kind == kindCluster, nil
	}
	nodes, err := r.store.Nodes(ctx)
	if err != nil {
		return false, err
	}
	if nodes.Cluster {
		r.kind.Store(kindCluster)
	} else {
		r.kind.Store(kindSingle)
	}
	return nodes.Cluster, nil
}

// Do implements Store.
func (r *router) Do(ctx context.Context, requests []Request) []Reply {
	if err := ended(ctx); err != nil {
		return unsent(len(requests), err)
	}
	cluster, err := r.isCluster(ctx)
	switch {
	case err != nil:
		return unsent(len(requests), err)
	case cluster:
		return r.doCluster(ctx, requests)
	case len(requests) == 1 && requests[0].Replicas <= 0:
		return r.doOne(ctx, &requests[0])
	}
	return r.doSingle(ctx, requests)
}

// A singleRequest is the memory that doOne needs, in one allocation.
type singleRequest struct {
	commands [1]store.Command
	replies  [1]Reply
}

// doOne is doSingle for one request without a WAIT. Most requests come this way, so it allocates
// once.
func (r *router) doOne(ctx context.Context, request *Request) []Reply {
	one := &singleRequest{commands: [1]store.Command{request.Args}}
	one.replies[0] = replyOf(doAt(ctx, r.store, request.Node, one.commands[:])[0])
	r.refreshIfReplaced(ctx, request, &one.replies[0])
	return one.replies[:]
}

// doSingle sends each request to the node that it names, or where the client's own routing leads.
func (r *router) doSingle(ctx context.Context, requests []Request) []Reply {
	replies := make([]Reply, len(requests))
	routed := make([]routedRequest, len(requests))
	for i := range requests {
		routed[i] = routedRequest{request: &requests[i], reply: &replies[i], node: requests[i].Node}
	}
	sendToNodes(ctx, routed, r.deliver)
	for i := range replies {
		if r.refreshIfReplaced(ctx, &requests[i], &replies[i]) {
			break // once is enough for all
		}
	}
	return replies
}

// refreshIfReplaced has the client look for the new master if a former one refused a request by
// REDIRECT. The next requests go there; this one keeps its reply.
func (r *router) refreshIfReplaced(ctx context.Context, request *Request, reply *Reply) bool {
	replaced := strings.HasPrefix(reply.Refused, "REDIRECT ")
	if replaced {
		_ = r.store.Refresh(ctx, request.Key) // if it fails, the next refusal has it tried again
	}
	return replaced
}

// A routedRequest is a request on its way to a node.
type routedRequest struct {
	request *Request
	reply   *Reply // to be filled in
	node    string // the address
	asking  bool   // ASK named the node, which serves the request only behind ASKING
}

// doCluster sends each request to the master of its slot, or to the node that it names. It sends a
// request again if it was redirected, or if it is unsent and its slot has another master by now.
func (r *router) doCluster(ctx context.Context, requests []Request) []Reply {
	replies := make([]Reply, len(requests))
	routed := make([]routedRequest, 0, len(requests))
	lookup := &nodeLookup{r: r}
	for i := range requests {
		address, err := lookup.nodeOf(ctx, &requests[i])
		if err != nil {
			replies[i] = Reply{Err: err, Unsent: true, Node: address}
			continue
		}
		routed = append(routed, routedRequest{request: &requests[i], reply: &replies[i], node: address})
	}
	sendToNodes(ctx, routed, r.deliverCluster)
	for range maxRedirects {
		if routed = lookup.sendAgain(ctx, routed); len(routed) == 0 {
			break
		}
		sendToNodes(ctx, routed, r.deliverCluster)
	}
	for i := range replies {
		// A redirect that was not followed: once too often, or the client cannot reach the node.
		// The request was not carried out, and may be tried again, which TRYAGAIN says.
		if isRedirect(replies[i].Refused) {
			replies[i].Refused = "TRYAGAIN " + replies[i].Refused
		}
	}
	return replies
}

// sendToNodes has the requests delivered, those for one node together, and those for several nodes
// at the same time. Each goroutine writes the replies to its own requests alone, and all have ended
// when sendToNodes returns.
func sendToNodes(ctx context.Context, routed []routedRequest, deliver func(context.Context, []routedRequest)) {
	byNode := map[string][]routedRequest{}
	for _, q := range routed {
		byNode[q.node] = append(byNode[q.node], q)
	}
	if len(byNode) == 1 {
		deliver(ctx, routed)
		return
	}
	var all sync.WaitGroup
	for _, group := range byNode {
		all.Go(func() { deliver(ctx, group) })
	}
	all.Wait()
}

// deliver sends requests to their one node in one flush, and fills in their replies.
func (r *router) deliver(ctx context.Context, group []routedRequest) {
	commands, waitTimeout := pipelineOf(group)
	waits := waitTimeout > 0
	// Without a deadline the client's own timeout holds, which may be shorter than the WAIT.
	if _, bounded := ctx.Deadline(); waits && !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, waitTimeout+waitMargin)
		defer cancel()
	}
	answers := doAt(ctx, r.store, group[0].node, commands)
	distribute(group, answers, waits)
}

// deliverCluster is deliver to a node of a cluster. If a reply suggests that another node serves
// the slot by now, the slots are read anew in the background.
func (r *router) deliverCluster(ctx context.Context, group []routedRequest) {
	r.deliver(ctx, group)
	for _, q := range group {
		q.reply.Node = q.node
		if suggestsStaleSlots(q.reply) {
			r.slots.refresh()
		}
	}
}

// pipelineOf returns the commands of requests to one node: for each request its own, behind ASKING
// if it needs that. If requests ask for replicas, one WAIT is behind them, and its timeout is not
// zero. One is enough, as it counts the replicas that have everything written on its connection.
func pipelineOf(group []routedRequest) (commands []store.Command, waitTimeout time.Duration) {
	commands = make([]store.Command, 0, len(group)+1)
	replicas, timeout := 0, int64(0)
	for _, q := range group {
		if q.asking {
			commands = append(commands, store.Command{"ASKING"})
		}
		commands = append(commands, q.request.Args)
		if q.request.Replicas > 0 {
			replicas = max(replicas, q.request.Replicas)
			timeout = max(timeout, q.request.ReplicasTimeout, 1) // 0 would be for ever
		}
	}
	if replicas > 0 {
		commands = append(commands, store.Command{"WAIT", replicas, timeout})
	}
	return commands, time.Duration(timeout) * time.Millisecond
}

// distribute fills in the replies to requests from the answers to their pipeline. If it waits for
// replicas, the last answer is that of WAIT.
func distribute(group []routedRequest, answers []store.Reply, waits bool) {
	var wait store.Reply
	if waits {
		wait = answers[len(answers)-1]
	}
	next := func() store.Reply { // doAt made sure that there are enough
		answer := answers[0]
		answers = answers[1:]
		return answer
	}
	for _, q := range group {
		var asking store.Reply
		if q.asking {
			asking = next()
		}
		answer := next()
		// The user may not use ASKING, and so the request was not carried out. That is the reason
		// to report, not the redirect back.
		if asking.Refused != "" && isRedirect(answer.Refused) {
			answer = asking
		}
		*q.reply = replyOf(answer)
		if q.request.Replicas > 0 && answer.Err == nil && answer.Refused == "" {
			q.reply.noteReplicas(wait)
		}
	}
}

// Subscribe implements Store.
func (r *router) Subscribe(ctx context.Context, sink Sink) (Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := newSubscription(r, sink)
	r.mu.Lock()
	r.subscriptions[s] = true
	r.mu.Unlock()
	return s, nil
}

// reconnect has the connections for messages to a node made again that were made before.
func (r *router) reconnect(node string) {
	r.mu.Lock()
	all := slices.Collect(maps.Keys(r.subscriptions))
	r.mu.Unlock()
	for _, s := range all {
		s.reconnect(node)
	}
}

// forget notes that a subscription is closed.
func (r *router) forget(s *subscription) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.subscriptions, s)
}

// refreshSlots begins to read the slots anew on a cluster, in the background.
func (r *router) refreshSlots() {
	if r.kind.Load() == kindCluster {
		r.slots.refresh()
	}
}

// replyOf returns the reply to a request whose command got an answer.
func replyOf(answer store.Reply) Reply {
	return Reply{Value: answer.Value, Refused: answer.Refused, Err: answer.Err, Unsent: answer.Unsent}
}

// noteReplicas notes what WAIT said of a request that was carried out.
func (r *Reply) noteReplicas(wait store.Reply) {
	if hasPrefix(wait.Refused, "NOPERM") { // it will never be known which replicas have the write
		*r = Reply{Err: errors.New(wait.Refused)}
		return
	}
	confirmed, _ := wait.Value.(int64) // without an answer, none
	r.Replicas = int(confirmed)
}

// errMissingReply is about a store that breaks its contract.
var errMissingReply = errors.New("the store returned fewer replies than it was given requests")

// doAt sends commands to one node. It returns a reply for each, also if the store returns fewer.
func doAt(ctx context.Context, s store.Store, node string, commands []store.Command) []store.Reply {
	replies := s.Do(ctx, node, commands)
	for len(replies) < len(commands) {
		replies = append(replies, store.Reply{Err: errMissingReply})
	}
	return replies
}

// unsent makes replies to n requests that were not sent.
func unsent(n int, err error) []Reply {
	replies := make([]Reply, n)
	for i := range replies {
		replies[i] = Reply{Err: err, Unsent: true}
	}
	return replies
}

// ended returns why ctx has ended, or nil. A deadline that is over counts even if the timer of ctx
// has not noticed.
func ended(ctx context.Context) error {
	err := store.Ended(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return errLate
	}
	return err
}

// isRedirect reports whether a node of a cluster refused a request because another node is to get
// it.
func isRedirect(refused string) bool { return hasPrefix(refused, "MOVED ", "ASK ") }

// suggestsStaleSlots reports whether, by its reply, a request may have gone to a node that does not
// serve its slot any more. ASK does not suggest that: the node still serves the slot.
func suggestsStaleSlots(reply *Reply) bool {
	return reply.Err != nil || judgeRefusal(reply.Refused) == misled || hasPrefix(reply.Refused, "CLUSTERDOWN", "MOVED")
}

// hasPrefix reports whether a text begins with one of the prefixes.
func hasPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
