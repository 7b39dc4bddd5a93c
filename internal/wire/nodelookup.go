package wire

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A nodeLookup finds the nodes for the requests of one Do on a cluster. It remembers what it asked
// the cluster, so that many requests cost no more questions than one.
type nodeLookup struct {
	r      *router
	reread bool             // the slot table was reread since the last sendAgain
	met    map[string]error // what came of meeting a node, by its address
}

// table returns the slot table. If reread, it is read anew, but at most once until the next
// sendAgain.
func (l *nodeLookup) table(ctx context.Context, reread bool) (*slotTable, error) {
	reread = reread && !l.reread
	l.reread = l.reread || reread
	return l.r.slots.known(ctx, reread)
}

// meet is router.meet, once for each node.
func (l *nodeLookup) meet(ctx context.Context, address, key string) error {
	err, tried := l.met[address]
	if !tried {
		err = l.r.meet(ctx, address, key)
		if l.met == nil {
			l.met = map[string]error{}
		}
		l.met[address] = err
	}
	return err
}

// nodeOf returns the address of the node that a request is for. If the client cannot meet that
// node, the address comes with the error.
func (l *nodeLookup) nodeOf(ctx context.Context, request *Request) (address string, err error) {
	table, err := l.table(ctx, false)
	if err != nil {
		return "", err
	}
	if address = table.nodeOf(request); address == "" { // there may be one by now
		if table, err = l.table(ctx, true); err != nil {
			return "", err
		}
		address = table.nodeOf(request)
	}
	switch {
	case address != "" && table.met[address]:
		return address, nil
	case address != "":
		return address, l.meet(ctx, address, request.Key)
	case request.Node != "":
		return "", fmt.Errorf("the cluster has no node %q", request.Node)
	}
	return "", fmt.Errorf("no node serves slot %d", slotOfKey(request.Key))
}

// sendAgain returns those requests that are to be sent again, and to which node. The others keep
// their replies.
func (l *nodeLookup) sendAgain(ctx context.Context, sent []routedRequest) (again []routedRequest) {
	l.reread = false // what was read before the requests were sent may be old now
	for _, q := range sent {
		node, asking := "", false
		if q.reply.Err != nil {
			node = l.newMaster(ctx, q)
		} else {
			node, asking = l.redirect(ctx, q)
		}
		if node != "" {
			q.node, q.asking = node, asking
			again = append(again, q)
		}
	}
	return again
}

// newMaster returns the node that a request without an answer may go to: it is unsent, and another
// node serves its slot by now. Empty: there is none. A request that may have been written is never
// sent again.
func (l *nodeLookup) newMaster(ctx context.Context, q routedRequest) string {
	if !q.reply.Unsent || q.request.Node != "" || ended(ctx) != nil {
		return ""
	}
	table, err := l.table(ctx, true)
	if err != nil {
		return ""
	}
	address := table.nodeOf(q.request)
	if address == "" || address == q.node || l.meet(ctx, address, q.request.Key) != nil {
		return ""
	}
	return address
}

// redirect returns the node that the server names for a request, by a line such as
//
//	MOVED 3999 127.0.0.1:6381
//
// and whether the request needs ASKING there. Empty: the server names none, or the client cannot
// meet the node.
func (l *nodeLookup) redirect(ctx context.Context, q routedRequest) (address string, asking bool) {
	words := strings.Fields(q.reply.Refused)
	if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
		return "", false
	}
	address = words[2]
	if port, ok := strings.CutPrefix(address, ":"); ok { // the same host
		address = endpoint("", port, q.node)
	}
	if l.meet(ctx, address, q.request.Key) != nil {
		return "", false
	}
	return address, words[0] == "ASK"
}

// meet makes sure that the client has met a node, which may serve the key.
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
	r.slots.refresh() // a table knows which nodes were met when it was read
	return err
}
