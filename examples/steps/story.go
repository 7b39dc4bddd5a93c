package main

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fault"
)

//go:embed stories.txt
var storiesText string

// steps are those of stories.txt.
var steps = readStories(storiesText)

// A step is one lock of the tutorials, and the same fault with holdfast.
type step struct {
	title           told
	source          string // the file of the naive lock in package naive
	naive, holdfast story
}

// A told is a line, which may have a translation.
type told struct{ english, chinese string }

func (t told) text() string {
	if inChinese && t.chinese != "" {
		return t.chinese
	}
	return t.english
}

// A story is a play, line by line.
type story []told

func readStories(text string) (all []step) {
	var into *story
	var last *told
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		head, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || head == "#":
		case head == "" && last != nil:
			last.chinese = strings.TrimSpace(rest)
		case head == "==":
			all = append(all, step{title: told{english: rest}})
			last = &all[len(all)-1].title
		case head == "file":
			all[len(all)-1].source = rest
		case line == "naive":
			into = &all[len(all)-1].naive
		case line == "holdfast":
			into = &all[len(all)-1].holdfast
		default:
			*into = append(*into, told{english: line})
			last = &(*into)[len(*into)-1]
		}
	}
	return all
}

func (lines story) play(s *scene) (judge func() verdict) {
	t := &telling{scene: s, cast: map[string]*process{}, marks: map[string]time.Time{}, words: map[string]string{},
		times: map[string]time.Duration{}}
	for _, line := range lines {
		head, rest, _ := strings.Cut(line.english, " ")
		if does := lineOf[head]; does != nil {
			does(t, rest, line)
		} else {
			t.tellProcess(t.process(head), rest)
		}
	}
	return t.judge
}

// A telling is what has become of a story so far.
type telling struct {
	*scene
	servers []*node
	ways    []*fault.Proxy // to the servers, if a process goes by them
	cast    map[string]*process
	held    []*fault.Held
	coming  []<-chan struct{} // the faults that are to happen
	marks   map[string]time.Time
	words   map[string]string // what {word} stands for
	times   map[string]time.Duration
	failed  string // the first condition that was not met
	judge   func() verdict
}

// lineOf has what the lines do, by their first words. All others begin with a process: its order is
// given and waited for, "&" only gives it, and "done" waits for what was given.
var lineOf = map[string]func(t *telling, rest string, line told){
	"servers": func(t *telling, n string, _ told) {
		for range t.number(n) {
			t.servers = append(t.servers, t.node())
		}
	},
	"start": func(t *telling, rest string, _ told) { t.start(strings.Fields(rest)) },
	"kill":  func(t *telling, name string, _ told) { t.process(name).kill() },
	"say":   func(t *telling, _ string, line told) { t.say("%s", t.fill(line, 4)) },
	"time":  func(t *telling, d string, _ told) { t.pass(t.duration(d)) },

	// What a way does: to a request, to its answer, or to all. The servers count from 1.
	"hold": func(t *telling, rest string, _ told) {
		way, match, answer := t.fault(rest)
		h := way.HoldRequest
		if answer {
			h = way.HoldAnswer
		}
		t.held = append(t.held, h(match))
		t.coming = append(t.coming, t.held[len(t.held)-1].Arrived())
	},
	"drop": func(t *telling, rest string, _ told) {
		way, match, _ := t.fault(rest)
		t.coming = append(t.coming, way.DropAnswer(match))
	},
	"arrived": func(t *telling, _ string, _ told) { // all faults have happened
		for _, fault := range t.coming {
			t.wait(fault)
		}
	},
	"pass": func(t *telling, _ string, _ told) { // what is held goes on
		for _, h := range t.held {
			h.Pass()
		}
	},
	"silence": func(t *telling, _ string, _ told) { t.ways[0].Silence() },
	"speak":   func(t *telling, _ string, _ told) { t.ways[0].Speak() },

	// What becomes of a server.
	"behind": func(t *telling, d string, _ told) { t.server().setBehind(t.duration(d)) },
	"restart": func(t *telling, n string, _ told) {
		crashed := t.servers[t.number(n)-1]
		crashed.crash()
		t.nodeAt(crashed.addr)
	},
	"fail-over": func(t *telling, _ string, _ told) {
		t.server().crash()
		t.ways[0].Lead(t.node().addr)
		t.ways[0].Cut()
	},

	// What is waited for.
	"waiters": func(t *telling, n string, _ told) { t.awaitWaiters(t.server(), t.number(n)) },
	"asks":    func(t *telling, name string, _ told) { t.awaitCommand(t.server(), name) },
	"renewed": func(t *telling, name string, _ told) {
		t.awaitCommand(t.server(), name)
		t.awaitQuiet(t.server(), name)
	},
	"expired": func(t *telling, key string, _ told) {
		for _, n := range t.servers {
			t.awaitExpiry(n, key)
		}
	},
	"over": func(t *telling, name string, _ told) {
		t.poll(func() (bool, error) { return !t.process(name).entries()[0].To.IsZero(), nil })
	},

	// Words and times for what is said.
	"read": func(t *telling, rest string, _ told) {
		words := strings.Fields(rest)
		var args []any
		for _, word := range words[1:] {
			args = append(args, word)
		}
		t.words[words[0]] = t.read(t.server(), args...)
	},
	"mark": func(t *telling, name string, _ told) { t.marks[name] = time.Now() },
	"took": func(t *telling, rest string, _ told) { // WORD [PROCESS] since MARK: until now, or until it got in
		words := strings.Fields(rest)
		until := time.Now()
		if words[1] != "since" {
			entries := t.process(words[1]).entries()
			if until = (time.Time{}); len(entries) > 0 {
				until = entries[len(entries)-1].From
			}
		}
		t.times[words[0]] = until.Sub(t.marks[words[len(words)-1]])
		t.words[words[0]] = formatTime(t.times[words[0]])
	},

	// The verdict: by conditions, or by who was inside when.
	"check": func(t *telling, condition string, _ told) { t.check(condition) },
	"if": func(t *telling, rest string, line told) {
		conditions, _, _ := strings.Cut(rest, ": ")
		t.check(conditions)
		v := verdict{true, t.fill(line, len("if ")+len(conditions)+2)}
		if t.failed != "" {
			v = verdictf(false, "not so: %s", t.failed)
		}
		t.judge = func() verdict { return v }
	},
	"together": func(t *telling, rest string, line told) {
		names, _, _ := strings.Cut(rest, ": ")
		how := t.fill(line, len("together ")+len(names)+2)
		t.judge = func() verdict { return together(how, tenures(t.processes(names)...)) }
	},
	"apart": func(t *telling, rest string, line told) {
		head, _, _ := strings.Cut(rest, ": ")
		names, want, _ := strings.Cut(head, " as ")
		answer := t.fill(line, len("apart ")+len(head)+2)
		t.judge = func() verdict {
			return apart(answer, tenures(t.processes(names)...), strings.Fields(want)...)
		}
	},
	"play": func(t *telling, name string, _ told) { t.judge = plays[name](t.scene) },
}

// tellProcess gives an order to a process, or a signal.
func (t *telling) tellProcess(p *process, order string) {
	order, later := strings.CutSuffix(order, " &")
	switch order {
	case "done":
		p.answer()
	case "STOP", "CONT":
		p.signal(order)
	case orderTry, orderWait, orderLeave, orderWrite:
		if p.begin(order); !later {
			p.answer()
		}
	default:
		t.must(fmt.Errorf("no line of a story: %s %s", p.name, order))
	}
}

// start starts a process: its name, its lock, and what else it needs: "via" lets it go by ways that
// can be disturbed.
func (t *telling) start(words []string) {
	r := role{Name: words[0], Lock: words[1]}
	for _, n := range t.all() {
		r.Addrs = append(r.Addrs, n.addr)
	}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "via":
			r.Addrs = nil
			for i, n := range t.servers {
				if i == len(t.ways) {
					t.ways = append(t.ways, t.network(n))
				}
				r.Addrs = append(r.Addrs, t.ways[i].Addr())
			}
		case "every":
			r.Every = t.duration(value)
		case "clock":
			r.Clock = t.duration(value)
		}
	}
	t.cast[r.Name] = t.startRole(r)
}

// all are the servers. There is one unless a line says otherwise.
func (t *telling) all() []*node {
	if len(t.servers) == 0 {
		t.servers = []*node{t.node()}
	}
	return t.servers
}

func (t *telling) server() *node { return t.all()[0] }

func (t *telling) process(name string) *process {
	if t.cast[name] == nil {
		t.must(fmt.Errorf("no process %s in the story", name))
	}
	return t.cast[name]
}

func (t *telling) processes(names string) (list []*process) {
	for name := range strings.FieldsSeq(names) {
		list = append(list, t.process(name))
	}
	return list
}

// fault reads request|answer "MATCH" [SERVER].
func (t *telling) fault(rest string) (way *fault.Proxy, match string, answer bool) {
	what, quoted, _ := strings.Cut(rest, " ")
	prefix, err := strconv.QuotedPrefix(quoted)
	t.must(err)
	match, err = strconv.Unquote(prefix)
	t.must(err)
	way = t.ways[0]
	if n := strings.TrimSpace(quoted[len(prefix):]); n != "" {
		way = t.ways[t.number(n)-1]
	}
	return way, match, what == "answer"
}

// check notes the first condition that is not met: a process is "in" or "out", a word "is" another
// one, or a time is "from" another one.
func (t *telling) check(conditions string) {
	for condition := range strings.SplitSeq(conditions, ", ") {
		words := strings.Fields(condition)
		met := false
		switch words[1] {
		case "in", "out":
			met = t.process(words[0]).isInside() == (words[1] == "in")
		case "is":
			met = t.words[words[0]] == words[2]
		case "from":
			met = t.times[words[0]] >= t.duration(words[2])
		}
		if !met && t.failed == "" {
			t.failed = condition
		}
	}
}

// fill returns what a line says behind its head, with the words that it names.
func (t *telling) fill(line told, head int) string {
	said := told{line.english[head:], line.chinese}.text()
	for name, word := range t.words {
		said = strings.ReplaceAll(said, "{"+name+"}", word)
	}
	return said
}

func (t *telling) number(text string) int {
	n, err := strconv.Atoi(text)
	t.must(err)
	return n
}

func (t *telling) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	t.must(err)
	return d
}
