package wire

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/store"
)

const (
	// nodesAsked is how many nodes are asked for the slots at once, as some may be down.
	nodesAsked = 4

	// slotsTimeout bounds each step of a reading.
	slotsTimeout = 2 * time.Second
)

// errUnreadableSlots is about a server that answers otherwise than Redis and Valkey.
var errUnreadableSlots = errors.New("cannot read the answer to CLUSTER SLOTS")

// A slotTable is what one node knew of the slots at one time. It does not change, so goroutines
// share it. The zero slotTable knows no node.
type slotTable struct {
	nodes     []Node
	addresses map[string]string // of all nodes, by id
	ranges    []servedRange     // in ascending order
	met       map[string]bool   // the addresses that the client had met when the table was read
}

// A servedRange is a range of slots, both ends included, and the address of its master.
type servedRange struct {
	from, to int
	address  string
}

// nodeOf returns the address of the node that a request is for: the node that it names, or the
// master of its slot. Empty: there is none.
func (t *slotTable) nodeOf(request *Request) string {
	if request.Node != "" {
		return t.addresses[request.Node]
	}
	return t.master(slotOfKey(request.Key))
}

// master returns the address of the node that serves a slot. Empty: none does.
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

// anyMaster returns the address of a master that the client has met. It is another than the last
// one if there are several, as that one may be gone.
func (t *slotTable) anyMaster(last string) (string, error) {
	found := ""
	for _, i := range rand.Perm(len(t.ranges)) {
		switch address := t.ranges[i].address; {
		case !t.met[address]:
		case address != last:
			return address, nil
		default:
			found = address
		}
	}
	if found == "" {
		return "", errors.New("the client has met no master of the cluster")
	}
	return found, nil
}

// has reports whether a node belonged to the cluster when the table was read.
func (t *slotTable) has(address string) bool {
	for _, known := range t.addresses {
		if known == address {
			return true
		}
	}
	return false
}

// slotTables keeps the newest slot table. One reading is under way at a time, for all callers, and
// none of them can cancel it for the others.
type slotTables struct {
	store store.Store

	mu      sync.Mutex   // guards all below
	table   *slotTable   // nil: none was read
	reading *slotReading // nil: none is under way
}

// A slotReading is one reading of the slots. A caller may wait until done is closed, and then read
// err.
type slotReading struct {
	done chan struct{}
	err  error
}

// latest returns the table that was read last, or an empty one.
func (s *slotTables) latest() *slotTable {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table == nil {
		return &slotTable{}
	}
	return s.table
}

// known returns the latest table. If there is none, or if it is to be reread, known waits for the
// end of a reading. If that fails or takes longer than ctx, the error comes with the latest table.
func (s *slotTables) known(ctx context.Context, reread bool) (*slotTable, error) {
	s.mu.Lock()
	table := s.table
	s.mu.Unlock()
	if table != nil && !reread {
		return table, nil
	}
	reading := s.refresh()
	select {
	case <-reading.done:
		return s.latest(), reading.err
	case <-ctx.Done():
		return s.latest(), ctx.Err()
	}
}

// refresh returns the reading that is under way, or begins one. If it fails, the table stays.
func (s *slotTables) refresh() *slotReading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading == nil {
		s.reading = &slotReading{done: make(chan struct{})}
		go s.read(s.reading)
	}
	return s.reading
}

// read carries a reading out.
func (s *slotTables) read(reading *slotReading) {
	table, err := readSlots(s.store)
	s.mu.Lock()
	if err == nil {
		s.table = table
	}
	s.reading = nil
	s.mu.Unlock()
	reading.err = err
	close(reading.done)
}

// readSlots asks some of the nodes for the slots, all at the same time, and takes the first answer.
// If none answers, it has the client look for other nodes, for the next reading.
func readSlots(s store.Store) (*slotTable, error) {
	ctx, cancel := context.WithTimeout(context.Background(), slotsTimeout)
	defer cancel()
	nodes, err := s.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	type outcome struct {
		table *slotTable
		err   error
	}
	asked := min(len(nodes.Addresses), nodesAsked)
	outcomes := make(chan outcome, asked) // has room for those that come after the first answer
	for _, i := range rand.Perm(len(nodes.Addresses))[:asked] {
		go func() {
			table, err := slotsOf(s, nodes.Addresses[i])
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
	refreshing, cancel := context.WithTimeout(context.Background(), slotsTimeout)
	defer cancel()
	_ = s.Refresh(refreshing, "") // the error of the reading tells more
	return nil, err
}

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}

// slotsOf asks one node for the slots. The table does not yet say which nodes the client has met.
func slotsOf(s store.Store, address string) (*slotTable, error) {
	ctx, cancel := context.WithTimeout(context.Background(), slotsTimeout)
	defer cancel()
	answer := doAt(ctx, s, address, []store.Command{{"CLUSTER", "SLOTS"}})[0]
	if answer.Err != nil {
		return nil, answer.Err
	}
	if answer.Refused != "" {
		return nil, errors.New(answer.Refused)
	}
	return parseSlots(answer.Value, address)
}

// parseSlots reads what the node at an address answered to CLUSTER SLOTS: for each range its ends,
// its master and its replicas.
func parseSlots(value any, asked string) (*slotTable, error) {
	entries, ok := value.([]any)
	if !ok {
		return nil, errUnreadableSlots
	}
	t := &slotTable{addresses: map[string]string{}}
	index := map[string]int{} // in t.nodes, by id
	for _, e := range entries {
		entry, _ := e.([]any)
		if len(entry) < 3 {
			return nil, errUnreadableSlots
		}
		from, _ := entry[0].(int64)
		to, _ := entry[1].(int64)
		for i, e := range entry[2:] {
			id, address := parseNode(e, asked)
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

// parseNode reads a node in the answer to CLUSTER SLOTS: host, port, id, and more in newer
// versions. A node without an id is known by its address.
func parseNode(value any, asked string) (id, address string) {
	fields, _ := value.([]any)
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

// endpoint returns the address of a node. A node that does not know its own host leaves it empty:
// then it is that of the node that was asked.
func endpoint(host, port, asked string) string {
	if host == "" {
		host, _, _ = net.SplitHostPort(asked)
	}
	return net.JoinHostPort(host, port)
}

// Slots is how many slots a cluster has.
const Slots = 16384

// crcs are the remainders of four bits by the polynomial of CRC16 (XMODEM), 0x1021.
var crcs = [16]uint16{0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
	0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef}

// SlotOf returns the cluster slot of a hash tag: CRC16 (XMODEM) modulo 16384, as the Redis Cluster
// specification says.
func SlotOf(tag string) int {
	var crc uint16
	for i := range len(tag) {
		crc = crc<<4 ^ crcs[crc>>12^uint16(tag[i]>>4)]
		crc = crc<<4 ^ crcs[crc>>12^uint16(tag[i]&15)]
	}
	return int(crc % Slots)
}

// tags has, for each slot, the smallest number whose base 36 hashes there. It is found when first
// needed.
var tags = sync.OnceValue(func() *[Slots]uint32 {
	var tags [Slots]uint32
	for n, missing := uint32(1), Slots; missing > 0; n++ {
		if slot := SlotOf(strconv.FormatUint(uint64(n), 36)); tags[slot] == 0 {
			tags[slot] = n
			missing--
		}
	}
	return &tags
})

// SlotTag returns a short fixed hash tag that lies in the slot.
func SlotTag(slot int) string { return strconv.FormatUint(uint64(tags()[slot]), 36) }

// slotOfKey returns the slot of a key: that of its hash tag, if it has one. A request without a key
// may go anywhere; its slot is 0.
func slotOfKey(key string) int {
	if key == "" {
		return 0
	}
	if tag, ok := hashTag(key); ok {
		return SlotOf(tag)
	}
	return SlotOf(key)
}

// hashTag returns what stands between the first brace and the next closing one, if that is
// anything.
func hashTag(key string) (string, bool) {
	_, rest, open := strings.Cut(key, "{")
	end := strings.Index(rest, "}")
	if !open || end <= 0 {
		return "", false
	}
	return rest[:end], true
}
