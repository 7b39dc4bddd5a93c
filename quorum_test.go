package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/store"
)

// away is a store that no test may ask.
type away struct {
	store.Store
	t *testing.T
}

func (a away) Do(context.Context, string, []store.Command) []store.Reply {
	a.t.Error("a request was sent")
	return nil
}

// addressed is a store on a server at an address.
type addressed struct {
	away
	address string
}

func (a *addressed) Address() string { return a.address }

// plural is a store of a type that == refuses to compare.
type plural struct {
	away
	_ []int
}

func TestNewQuorumArguments(t *testing.T) {
	stores := func(n int) []store.Store {
		all := make([]store.Store, n)
		for i := range all {
			all[i] = &away{t: t}
		}
		return all
	}
	at := func(addresses ...string) (all []store.Store) {
		for _, a := range addresses {
			all = append(all, &addressed{away{t: t}, a})
		}
		return all
	}
	one, many := stores(3), plural{away: away{t: t}}
	for _, c := range []struct {
		name   string
		stores []store.Store
		config *holdfast.Config
		wrong  string // in the error; empty: none
	}{
		{"three", stores(3), nil, ""},
		{"five", stores(5), nil, ""},
		{"nine", stores(9), nil, ""},
		{"none", nil, nil, "stores"},
		{"one", stores(1), nil, "3, 5, 7 or 9"},
		{"two", stores(2), nil, "3, 5, 7 or 9"},
		{"four", stores(4), nil, "3, 5, 7 or 9"},
		{"eleven", stores(11), nil, "3, 5, 7 or 9"},
		{"one is nil", append(stores(2), nil), nil, "stores[2]"},
		{"one twice", append(stores(2), one[0], stores(1)[0], one[0]), nil, `stores[4] is "the same as stores[2]"`},
		{"one three times", []store.Store{one[1], one[1], one[1]}, nil, `stores[2] is "the same as stores[0]"`},
		{"equal values", []store.Store{away{t: t}, one[0], away{t: t}}, nil, `stores[2] is "the same as stores[0]"`},
		{"two are nil", []store.Store{nil, one[0], nil}, nil, "stores[2]"},
		{"values that nobody can compare", []store.Store{many, many, one[0]}, nil, ""},
		{"some that nobody can compare", []store.Store{away{Store: many, t: t}, away{Store: many, t: t}, one[0]}, nil,
			""},
		{"one address twice", at("a:6379", "b:6379", "a:6379"), nil, `stores[2] is "at a:6379, as stores[0] is"`},
		{"one address three times", at("a:6379", "a:6379", "a:6379"), nil, `stores[2] is "at a:6379, as stores[0] is"`},
		{"a name in capitals", at("db.example:6379", "DB.Example:6379", "c:1"), nil, "stores[1]"},
		{"a name with a dot behind it", at("db.example:6379", "db.example.:6379", "c:1"), nil, "stores[1]"},
		{"the name of this host", at("localhost:6379", "127.0.0.1:6379", "c:1"), nil, "stores[1]"},
		{"no host", at(":6379", "localhost:6379", "c:1"), nil, "stores[1]"},
		{"any address of this host", at("0.0.0.0:6379", "127.0.0.1:6379", "c:1"), nil, "stores[1]"},
		{"one address in two forms", at("[::ffff:10.0.0.1]:6379", "10.0.0.1:6379", "c:1"), nil, "stores[1]"},
		{"long and short", at("[fe80:0:0:0:0:0:0:1]:6379", "[fe80::1]:6379", "c:1"), nil, "stores[1]"},
		{"one socket", at("/run/a.sock", "/run/../run/a.sock", "c:1"), nil, "stores[1]"},
		{"other ports", at("a:6379", "a:6380", "a:6381"), nil, ""},
		{"other addresses of this host", at("127.0.0.1:6379", "127.0.0.2:6379", "[::1]:6379"), nil, ""},
		{"other names", at("a:6379", "a.b:6379", "aa:6379"), nil, ""},
		{"other sockets", at("/run/a.sock", "/run/A.sock", "a.sock"), nil, ""},
		{"no addresses", at("", "", ""), nil, ""},
		{"replicas", stores(3), &holdfast.Config{Replicas: holdfast.Replicas{Count: 1}}, "replicate to nobody"},
		{"any other bad field", stores(3), &holdfast.Config{Prefix: "{"}, "Config.Prefix"},
		{"two bad fields", stores(4), &holdfast.Config{Prefix: "{"}, "Config.Prefix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := holdfast.NewQuorum(c.stores, c.config)
			var bad *holdfast.ArgumentError
			switch {
			case c.wrong == "" && err != nil:
				t.Fatal(err)
			case c.wrong == "":
				must(t, client.Close())
				if _, err := client.Quorum(t.Context()); !errors.Is(err, holdfast.ErrClosed) {
					t.Errorf("after Close: %v", err)
				}
			case client != nil || !errors.As(err, &bad) || !strings.Contains(err.Error(), c.wrong):
				t.Errorf("got %v, %v; want an error about %s", client, err, c.wrong)
			}
		})
	}
}

// Quorum refuses a client that is not of a quorum, says which it is, and sends nothing.
func TestQuorumOfAnotherClient(t *testing.T) {
	client, err := holdfast.New(away{t: t}, nil)
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	var bad *holdfast.ArgumentError
	for c, value := range map[*holdfast.Client]any{client: "made by New", nil: nil} {
		_, err := c.Quorum(t.Context())
		if !errors.As(err, &bad) || len(bad.Problems) != 1 || bad.Problems[0].Value != value {
			t.Errorf("got %v, want a *holdfast.ArgumentError about a client that is %v", err, value)
		}
	}
}
