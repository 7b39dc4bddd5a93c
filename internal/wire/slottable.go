package wire

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/store"
)

const (
	askedForSlots = 4               // nodes at once: some may be down
	slotsTimeout  = 2 * time.Second // of one node
)

// errSlots is about a server that speaks another dialect.
var errSlots = errors.New("cannot read the answer to CLUSTER SLOTS")

// A slotTable is what one node knew of the slots at one time. It does not change.
type slotTable struct {
	nodes     []Node
	addresses map[string]string // by id
	ranges    []servedRange     // in order
	met       map[string]bool   // addresses that the client had met when the table was read
}

// A servedRange of slots has a master at an address.
type servedRange struct {
	from, to int
	address  string
}

// master is the address of the node that serves a slot; empty: none does.
func (t *slotTable) master(slot int) string {
	i, found := slices.BinarySearchFunc(t.ranges, slot, func(r servedRange, slot int) int {
		switch {
		case r.to < slot:
			return -1
		case r.from > slot:
			return 1
		}
		return 0
	})
	if !found {
		return ""
	}
	return t.ranges[i].address
}

// anyMaster is one of the masters that the client has met, another than the last one where there
// are several: that may be gone.
func (t *slotTable) anyMaster(last string) (string, error) {
	found := ""
	for _, i := range rand.Perm(len(t.ranges)) {
		if address := t.ranges[i].address; t.met[address] {
			if address != last {
				return address, nil
			}
			found = address
		}
	}
	if found == "" {
		return "", errors.New("the client has met no master of the cluster")
	}
	return found, nil
}

// has tells whether a node belonged to the cluster when the table was read.
func (t *slotTable) has(address string) bool {
	for _, known := range t.addresses {
		if known == address {
			return true
		}
	}
	return false
}

// slotTables keeps the newest slot table. One reading is under way at a time, for all that want it.
type slotTables struct {
	store store.Store

	mu      sync.Mutex
	table   *slotTable // nil: none was read
	reading *slotReading
}

// A slotReading is one reading of the slots.
type slotReading struct {
	done chan struct{}
	err  error // once done is closed
}

// latest is the table that was read last; without any, an empty one.
func (s *slotTables) latest() *slotTable {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table == nil {
		return &slotTable{}
	}
	return s.table
}

// known is the latest table, or, where fresh, one that is read now. Without an answer, the error
// comes with the table of before.
func (s *slotTables) known(ctx context.Context, fresh bool) (*slotTable, error) {
	s.mu.Lock()
	table := s.table
	s.mu.Unlock()
	if table != nil && !fresh {
		return table, nil
	}
	r := s.refresh()
	select {
	case <-r.done:
	case <-ctx.Done():
		return s.latest(), ctx.Err()
	}
	return s.latest(), r.err
}

// refresh begins to read the slots, unless that is under way. On failure the table stays what it
// was.
func (s *slotTables) refresh() *slotReading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading != nil {
		return s.reading
	}
	r := &slotReading{done: make(chan struct{})}
	s.reading = r
	go func() {
		t, err := s.read()
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			s.table = t
		}
		s.reading, r.err = nil, err
		close(r.done)
	}()
	return r
}

// read asks some of the nodes for the slots, and takes the first answer. Where none answers, the
// client is made to learn of others, for the next reading.
func (s *slotTables) read() (*slotTable, error) {
	ctx, cancel := context.WithTimeout(context.Background(), slotsTimeout)
	defer cancel()
	nodes, err := s.store.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	type outcome struct {
		table *slotTable
		err   error
	}
	asked := min(len(nodes.Addresses), askedForSlots)
	outcomes := make(chan outcome, asked)
	for _, i := range rand.Perm(len(nodes.Addresses))[:asked] {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), slotsTimeout)
			defer cancel()
			table, err := slotsOf(ctx, s.store, nodes.Addresses[i])
			outcomes <- outcome{table, err}
		}()
	}
	err = errors.New("the client knows no node of the cluster")
	for range asked {
		o := <-outcomes
		if o.err == nil {
			o.table.met = setOf(nodes.Addresses)
			return o.table, nil
		}
		err = o.err
	}
	again, cancel := context.WithTimeout(context.Background(), slotsTimeout)
	defer cancel()
	_ = s.store.Refresh(again, "")
	return nil, err
}

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}

// slotsOf asks the node at an address for CLUSTER SLOTS.
func slotsOf(ctx context.Context, s store.Store, asked string) (*slotTable, error) {
	r := send(ctx, s, asked, []store.Command{{"CLUSTER", "SLOTS"}})[0]
	if r.Err != nil {
		return nil, r.Err
	}
	if r.Refused != "" {
		return nil, errors.New(r.Refused)
	}
	return parseSlots(r.Value, asked)
}

// parseSlots reads the answer to CLUSTER SLOTS of the node at an address.
func parseSlots(value any, asked string) (*slotTable, error) {
	entries, ok := value.([]any)
	if !ok {
		return nil, errSlots
	}
	t := &slotTable{addresses: map[string]string{}}
	index := map[string]int{}
	for _, e := range entries {
		entry, _ := e.([]any) // from, to, master, replicas ...
		if len(entry) < 3 {
			return nil, errSlots
		}
		from, _ := entry[0].(int64)
		to, _ := entry[1].(int64)
		for i, e := range entry[2:] {
			id, address := identity(e, asked)
			at, seen := index[id]
			if !seen {
				at = len(t.nodes)
				index[id], t.addresses[id] = at, address
				t.nodes = append(t.nodes, Node{ID: id, Role: "replica"})
			}
			if i == 0 {
				t.nodes[at].Role = "master"
				t.nodes[at].Slots = append(t.nodes[at].Slots, SlotRange{From: int(from), To: int(to)})
				t.ranges = append(t.ranges, servedRange{int(from), int(to), address})
			}
		}
	}
	slices.SortFunc(t.ranges, func(a, b servedRange) int { return a.from - b.from })
	return t, nil
}

// identity reads a node in CLUSTER SLOTS: host, port, id, and more in newer versions.
func identity(e any, asked string) (id, address string) {
	fields, _ := e.([]any)
	if len(fields) < 2 {
		return "", ""
	}
	host, _ := fields[0].(string)
	port, _ := fields[1].(int64)
	address = endpoint(host, strconv.FormatInt(port, 10), asked)
	if len(fields) > 2 {
		id, _ = fields[2].(string)
	}
	if id == "" {
		id = address
	}
	return id, address
}

// endpoint is an address. A node that does not know its own host is where it was asked.
func endpoint(host, port, asked string) string {
	if host == "" {
		host, _, _ = net.SplitHostPort(asked)
	}
	return net.JoinHostPort(host, port)
}
