package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/dashboard"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/states"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/redisstore"
)

// frozen is an embedded server whose clock stands still.
func frozen(t *testing.T) *miniredis.Miniredis {
	mini := miniredis.RunT(t)
	mini.SetTime(time.Now())
	return mini
}

// commandsTo sends commands to a server until the test is over. They must succeed.
func commandsTo(t *testing.T, mini *miniredis.Miniredis) func(args ...any) {
	operator := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	t.Cleanup(func() { _ = operator.Close() })
	return func(args ...any) {
		fatal.If(t, operator.Do(t.Context(), args...).Err())
	}
}

func printed(t *testing.T, args ...string) []byte {
	t.Helper()
	code, out, errs := execute(t, args...)
	if code != 0 {
		t.Errorf("holdfast %s: exit code %d: %s", strings.Join(args, " "), code, errs)
	}
	return []byte(out)
}

// read reads a document into a value, and refuses what the value would write otherwise: a field
// that it does not know, lacks, or has in another form.
func read(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, &lockinfo.Document{Value: into}); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	again, err := json.Marshal(lockinfo.Document{Value: into})
	fatal.If(t, err)
	var one, two any
	fatal.If(t, errors.Join(json.Unmarshal(text, &one), json.Unmarshal(again, &two)))
	if !reflect.DeepEqual(one, two) {
		t.Errorf("printed  %s\nwritten again  %s", text, again)
	}
}

// A fact compares what was read with what the library says. An error has its text alone.
func fact(t *testing.T, where string, got, want lockinfo.Info) {
	t.Helper()
	for _, info := range []*lockinfo.Info{&got, &want} {
		info.Masters = slices.Clone(info.Masters)
		for i := range info.Masters {
			if m := &info.Masters[i]; m.Err != nil {
				m.Err = errors.New(m.Err.Error())
			}
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %q\ngot  %+v\nwant %+v", where, want.Name, got, want)
	}
}

// facts compares what all commands and the dashboard's stream print with what the library says.
func facts(t *testing.T, client *holdfast.Client, made map[string]lockinfo.State) {
	t.Helper()
	want := map[string]lockinfo.Info{}
	for info, err := range client.List(t.Context(), holdfast.ListOptions{}) {
		fatal.If(t, err)
		want[info.Name] = info
	}
	for name, state := range made {
		if got := want[name].State(); got != state {
			t.Errorf("%q is %s, and was made %s", name, got, state)
		}
	}
	for name, info := range want {
		if name == "holdfast:no lock" {
			continue
		}
		for _, format := range []string{"json", "jsonl"} {
			var got lockinfo.Info
			read(t, printed(t, "inspect", "-o", format, name), &got)
			fact(t, "inspect -o "+format, got, info)
		}
	}
	for where, got := range map[string][]lockinfo.Info{"ls -o json": listJSON(t), "ls -o jsonl": listLines(t),
		"watch": watchLines(t), "stream": stream(t, client)} {
		told := maps.Clone(want)
		if where == "watch" { // it tells who holds and who waits: not of kept places alone
			maps.DeleteFunc(told, func(_ string, info lockinfo.Info) bool {
				return info.State() == lockinfo.StateFree && info.Waiters == 0
			})
		}
		if len(got) != len(told) {
			t.Errorf("%s: %d names, want %d", where, len(got), len(told))
		}
		for _, info := range got {
			known := want[info.Name]
			if info.At.After(known.At) && known.At.IsZero() { // of a key that is no lock's: when it was seen
				info.At = known.At
			}
			if where == "stream" {
				known = known.Summary()
			}
			fact(t, where, info, known)
		}
	}
}

func listJSON(t *testing.T) []lockinfo.Info {
	var list struct {
		Locks    []lockinfo.Info `json:"locks"`
		Complete bool            `json:"complete"`
	}
	read(t, printed(t, "ls", "-o", "json"), &list)
	return list.Locks
}

func listLines(t *testing.T) (infos []lockinfo.Info) {
	for line := range bytes.Lines(printed(t, "ls", "-o", "jsonl")) {
		var info lockinfo.Info
		read(t, line, &info)
		infos = append(infos, info)
	}
	return infos
}

// watchLines are the names of the first look of watch, which it prints before it rests.
func watchLines(t *testing.T) (infos []lockinfo.Info) {
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	run(ctx, []string{"watch", "-o", "jsonl"}, strings.NewReader(""), &out, io.Discard)
	seen := map[string]bool{}
	for line := range bytes.Lines(out.Bytes()) {
		var change lockinfo.Change
		if read(t, line, &change); !seen[change.After.Name] {
			infos = append(infos, change.After)
		}
		seen[change.After.Name] = true
	}
	return infos
}

// stream reads the list of the dashboard's stream.
func stream(t *testing.T, client *holdfast.Client) (infos []lockinfo.Info) {
	site := httptest.NewServer(dashboard.Handler(client, nil))
	defer site.Close()
	defer site.CloseClientConnections()
	response, err := http.Get(site.URL + "/events")
	fatal.If(t, err)
	defer response.Body.Close()
	events := bufio.NewScanner(response.Body)
	events.Buffer(nil, 1<<24)
	for more := true; more && events.Scan(); {
		data, ok := strings.CutPrefix(events.Text(), "data: ")
		var look struct {
			Error   string `json:"error"`
			Part    bool   `json:"part"`
			Changed []struct {
				Lock lockinfo.Info `json:"lock"`
			} `json:"changed"`
		}
		if !ok || !strings.Contains(data, `"changed":`) {
			continue
		}
		if err := json.Unmarshal([]byte(data), &look); err != nil || look.Error != "" {
			t.Fatal(err, look.Error)
		}
		for _, row := range look.Changed {
			infos = append(infos, row.Lock)
		}
		more = look.Part
	}
	return infos
}

// What the commands and the dashboard print of a name, in every state, is what the library says, in
// the form of package lockinfo: nothing less, nothing more.
func TestFactsHaveOneForm(t *testing.T) {
	mini := frozen(t)
	t.Setenv("REDIS_URL", "redis://"+mini.Addr())
	client := func(config *holdfast.Config, dial states.Dial) *holdfast.Client {
		rdb := redis.NewClient(&redis.Options{Addr: mini.Addr(), Dialer: dial, DialerRetries: 1})
		made, err := holdfast.New(redisstore.New(rdb), config)
		fatal.If(t, err)
		t.Cleanup(func() { _ = made.Close(); _ = rdb.Close() })
		return made
	}
	now := time.Now()
	made := states.Make(t, states.Server{
		Client:  client,
		Command: commandsTo(t, mini),
		Ahead:   func(step time.Duration) { now = now.Add(step); mini.SetTime(now) },
	})
	facts(t, client(nil, nil), made)
	for _, info := range listLines(t) {
		delete(made, info.Name)
	}
	if left := slices.Sorted(maps.Keys(made)); len(left) > 0 {
		t.Errorf("not listed: %q", left)
	}
}

func TestFactsOfAQuorumHaveOneForm(t *testing.T) {
	long(t)
	var masters []*miniredis.Miniredis
	var urls []string
	for range 3 {
		mini := frozen(t)
		masters, urls = append(masters, mini), append(urls, "redis://"+mini.Addr())
	}
	t.Setenv("REDIS_URL", server.Quorum(urls))
	client := func(label string) *holdfast.Client {
		return newClient(t, server.Quorum(urls),
			holdfast.Config{Label: label, TrustNewNodes: true, ReleaseTimeout: 100 * time.Millisecond})
	}
	made := states.MakeAtQuorum(t, client, commandsTo(t, masters[0]))
	facts(t, client("operator"), made)
}
