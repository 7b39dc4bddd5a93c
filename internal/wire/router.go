package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/store"
)

const (
	// redirects is how often one request is sent on by MOVED and ASK, which say that it was not
	// carried out.
	redirects = 3
	// waitTimeout bounds a request that waits for replicas and has no deadline, beside the time
	// that it gives them.
	waitTimeout = 10 * time.Second
)

// A router is the Store on what an adapter brings. On a cluster it has a slot table of its own: a
// WAIT must go where its write went, and clients do not say where that is.
type router struct {
	store store.Store
	kind  atomic.Int32 // it never changes once it is known
	slots slotTables

	silentAfter, idleAfter time.Duration // of connections for messages
}

const (
	kindUnknown int32 = iota
	kindSingle
	kindCluster
)

// Route makes a Store of what an adapter brings. It sends nothing.
func Route(s store.Store) Store { return Impatient(s, silentAfter, idleAfter) }

// Impatient is Route for tests on real servers, which go by no fake clock. Its connections for
// messages are asked for a sign of life after another time of silence, and are closed after
// another time without channels.
func Impatient(s store.Store, silentAfter, idleAfter time.Duration) Store {
	return &router{store: s, slots: slotTables{store: s}, silentAfter: silentAfter, idleAfter: idleAfter}
}

// cluster tells whether keys are spread over slots. The first question may cost a request.
func (r *router) cluster(ctx context.Context) (bool, error) {
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
	cluster, err := r.cluster(ctx)
	switch {
	case err != nil:
		return unsent(len(requests), err)
	case !cluster:
		return r.doSingle(ctx, requests)
	}
	return r.doCluster(ctx, requests)
}

// doSingle sends requests where they say, or where the client's own routing leads.
func (r *router) doSingle(ctx context.Context, requests []Request) []Reply {
	var replies []Reply
	if len(requests) == 1 && requests[0].Replicas <= 0 {
		one := &struct { // in one allocation
			command [1]store.Command
			reply   [1]Reply
		}{command: [1]store.Command{requests[0].Args}}
		one.reply[0].take(send(ctx, r.store, requests[0].Node, one.command[:])[0])
		replies = one.reply[:]
	} else {
		replies = make([]Reply, len(requests))
		parcels := make([]parcel, len(requests))
		for i := range requests {
			parcels[i] = parcel{index: i, node: requests[i].Node}
		}
		r.send(ctx, requests, replies, parcels, r.deliver)
	}
	for i := range replies {
		if strings.HasPrefix(replies[i].Refused, "REDIRECT ") { // the next find the new master
			_ = r.store.Refresh(ctx, requests[i].Key)
			break
		}
	}
	return replies
}

// A parcel is a request on its way to a node.
type parcel struct {
	index  int    // of the request
	node   string // its address
	asking bool   // the node has not taken the slot over yet
}

// doCluster sends requests to the nodes that serve their keys, and those that were not carried out
// where they were redirected to, or where their slot is served by now.
func (r *router) doCluster(ctx context.Context, requests []Request) []Reply {
	replies := make([]Reply, len(requests))
	parcels := make([]parcel, 0, len(requests))
	seen := &sights{r: r}
	for i := range requests {
		address, err := seen.serving(ctx, &requests[i])
		if err != nil {
			replies[i] = Reply{Err: err, Unsent: true, Node: address}
			continue
		}
		parcels = append(parcels, parcel{index: i, node: address})
	}
	for left := redirects; len(parcels) > 0; left-- {
		r.send(ctx, requests, replies, parcels, r.deliverCluster)
		if left == 0 {
			break
		}
		parcels = seen.redirected(ctx, requests, replies, parcels)
	}
	for i := range replies {
		// To a node that the client has not met, or in a circle: it was not carried out.
		if hasPrefix(replies[i].Refused, "MOVED ", "ASK ") {
			replies[i].Refused = "TRYAGAIN " + replies[i].Refused
		}
	}
	return replies
}

// sights are what one Do has asked about the cluster, for all of its requests.
type sights struct {
	r     *router
	fresh bool             // the slot table was read anew
	met   map[string]error // what came of meeting a node, by its address
}

// table is the slot table. At most once it is read anew.
func (s *sights) table(ctx context.Context, fresh bool) (*slotTable, error) {
	fresh = fresh && !s.fresh
	s.fresh = s.fresh || fresh
	return s.r.slots.known(ctx, fresh)
}

// meet makes the client learn of a node that may serve a key, if it has not.
func (s *sights) meet(ctx context.Context, address, key string) error {
	err, tried := s.met[address]
	if !tried {
		err = s.r.meet(ctx, address, key)
		if s.met == nil {
			s.met = map[string]error{}
		}
		s.met[address] = err
	}
	return err
}

// serving is the address of the node that a request is for. It comes with an error where the client
// has not met that node.
func (s *sights) serving(ctx context.Context, request *Request) (string, error) {
	for fresh := false; ; fresh = true {
		table, err := s.table(ctx, fresh)
		if err != nil {
			return "", err
		}
		var address string
		if request.Node != "" {
			address = table.addresses[request.Node]
		} else {
			address = table.master(slotOfKey(request.Key))
		}
		switch {
		case address != "" && table.met[address]:
			return address, nil
		case address != "":
			return address, s.meet(ctx, address, request.Key)
		case !fresh:
		case request.Node != "":
			return "", fmt.Errorf("the cluster has no node %q", request.Node)
		default:
			return "", fmt.Errorf("no node serves slot %d", slotOfKey(request.Key))
		}
	}
}

// meet makes the client learn of a node that may serve a key.
func (r *router) meet(ctx context.Context, address, key string) error {
	nodes, err := r.store.Nodes(ctx)
	if err != nil || slices.Contains(nodes.Addresses, address) {
		return err
	}
	if err := r.store.Refresh(ctx, key); err != nil {
		return err
	}
	if nodes, err = r.store.Nodes(ctx); err == nil && !slices.Contains(nodes.Addresses, address) {
		err = fmt.Errorf("the client has no connection to %s", address)
	}
	r.slots.refresh() // for the next requests to know that the client has met it
	return err
}

// send sends every node its parcels in one flush, all nodes at the same time.
func (r *router) send(ctx context.Context, requests []Request, replies []Reply, parcels []parcel,
	deliver func(context.Context, []parcel, []Request, []Reply)) {
	nodes := map[string][]parcel{}
	for _, p := range parcels {
		nodes[p.node] = append(nodes[p.node], p)
	}
	var all sync.WaitGroup
	for _, load := range nodes {
		if len(nodes) == 1 {
			deliver(ctx, load, requests, replies)
			return
		}
		all.Go(func() { deliver(ctx, load, requests, replies) })
	}
	all.Wait()
}

// deliver sends the parcels of one node, and one WAIT behind them for those that ask for
// replicas: it counts the replicas that have everything written on its connection, so one at the
// end holds for all.
func (r *router) deliver(ctx context.Context, load []parcel, requests []Request, replies []Reply) {
	commands := make([]store.Command, 0, len(load)+1)
	replicas, timeout := 0, int64(0)
	for _, p := range load {
		if p.asking {
			commands = append(commands, store.Command{"ASKING"})
		}
		request := &requests[p.index]
		commands = append(commands, request.Args)
		if request.Replicas > 0 {
			replicas = max(replicas, request.Replicas)
			timeout = max(timeout, request.ReplicasTimeout, 1) // 0 is for ever
		}
	}
	if replicas > 0 {
		commands = append(commands, store.Command{"WAIT", replicas, timeout})
		if _, bounded := ctx.Deadline(); !bounded { // a client may give up before it can come
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, waitTimeout+time.Duration(timeout)*time.Millisecond)
			defer cancel()
		}
	}
	answers := send(ctx, r.store, load[0].node, commands)
	var wait store.Reply
	if replicas > 0 {
		wait = answers[len(answers)-1]
	}
	for _, p := range load {
		var asked store.Reply
		if p.asking {
			asked, answers = answers[0], answers[1:]
		}
		reply := &replies[p.index]
		reply.take(answers[0])
		answers = answers[1:]
		// A user that may not ask had nothing carried out.
		if asked.Refused != "" && hasPrefix(reply.Refused, "MOVED ", "ASK ") {
			reply.take(asked)
		}
		if requests[p.index].Replicas > 0 && reply.Err == nil && reply.Refused == "" {
			reply.confirm(wait)
		}
	}
}

// deliverCluster is deliver to a node of a cluster. What the node says may tell that another serves
// the slot by now.
func (r *router) deliverCluster(ctx context.Context, load []parcel, requests []Request, replies []Reply) {
	r.deliver(ctx, load, requests, replies)
	for _, p := range load {
		reply := &replies[p.index]
		reply.Node = p.node
		if reply.Err != nil || hasPrefix(reply.Refused, "READONLY", "CLUSTERDOWN", "MOVED") {
			r.slots.refresh() // in the background
		}
	}
}

// redirected returns what to send again: requests that were redirected, and those that could not be
// sent because their node is gone, where another serves the slot by now. The others stay answered.
func (s *sights) redirected(ctx context.Context, requests []Request, replies []Reply, parcels []parcel) (next []parcel) {
	s.fresh = false // another round
	for _, p := range parcels {
		reply, request := &replies[p.index], &requests[p.index]
		if reply.Err != nil {
			if !reply.Unsent || request.Node != "" || ended(ctx) != nil {
				continue
			}
			table, err := s.table(ctx, true)
			address := table.master(slotOfKey(request.Key))
			if err == nil && address != "" && address != p.node && s.meet(ctx, address, request.Key) == nil {
				next = append(next, parcel{index: p.index, node: address})
			}
			continue
		}
		words := strings.Fields(reply.Refused) // MOVED 3999 127.0.0.1:6381
		if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
			continue
		}
		address := words[2]
		if strings.HasPrefix(address, ":") { // a node that does not know its own address
			address = endpoint("", address[1:], p.node)
		}
		if s.meet(ctx, address, request.Key) == nil {
			next = append(next, parcel{index: p.index, node: address, asking: words[0] == "ASK"})
		}
	}
	return next
}

// Subscribe implements Store.
func (r *router) Subscribe(ctx context.Context, sink Sink) (Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return newSubscription(r, sink), nil
}

// take takes the answer of one command.
func (r *Reply) take(answer store.Reply) {
	*r = Reply{Value: answer.Value, Refused: answer.Refused, Err: answer.Err, Unsent: answer.Unsent}
}

// confirm takes what WAIT said of a request that was carried out.
func (r *Reply) confirm(wait store.Reply) {
	if hasPrefix(wait.Refused, "NOPERM") { // carried out, and nobody may ask whether by others
		*r = Reply{Err: errors.New(wait.Refused)}
		return
	}
	confirmed, _ := wait.Value.(int64)
	r.Replicas = int(confirmed)
}

// errMissingReply is about a store that breaks its contract.
var errMissingReply = errors.New("the store returned fewer replies than it was given requests")

// send sends commands to one node, and has a reply for each, also where the store returns fewer.
func send(ctx context.Context, s store.Store, node string, commands []store.Command) []store.Reply {
	replies := s.Do(ctx, node, commands)
	for len(replies) < len(commands) {
		replies = append(replies, store.Reply{Err: errMissingReply})
	}
	return replies
}

// unsent says of so many requests that they were not sent.
func unsent(n int, err error) []Reply {
	replies := make([]Reply, n)
	for i := range replies {
		replies[i] = Reply{Err: err, Unsent: true}
	}
	return replies
}

// ended tells that ctx has ended, also when its timer has not noticed.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

func hasPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// slotOfKey is where a key lies: by its hash tag, if it has one. That of no key at all is 0.
func slotOfKey(key string) int {
	if key == "" {
		return 0
	}
	if tag, ok := hashTag(key); ok {
		return SlotOf(tag)
	}
	return SlotOf(key)
}

// hashTag is what stands between the first brace and the next closing one, if that is anything.
func hashTag(key string) (string, bool) {
	_, rest, open := strings.Cut(key, "{")
	end := strings.Index(rest, "}")
	if !open || end <= 0 {
		return "", false
	}
	return rest[:end], true
}

// doubtSlots begins to read the slots anew on a cluster, in the background.
func (r *router) doubtSlots() {
	if r.kind.Load() == kindCluster {
		r.slots.refresh()
	}
}
