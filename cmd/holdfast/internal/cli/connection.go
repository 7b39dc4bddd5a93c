// Package cli has what the commands share: the flags of the connection and of the output, checks of
// arguments, completion of names, exit codes, and interrupts.
package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// A Connection says which servers a command talks to. All commands that talk to servers have its
// flags.
type Connection struct {
	Prefix string
	Redis  string // URL, of one server or of a quorum
	TLS    server.TLS
}

// AddFlags adds the flags of the connection to a command. The URL is that of REDIS_URL if no flag
// names another.
func (c *Connection) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	c.Redis = DefaultURL
	flags.Var(&urls{to: &c.Redis}, "redis",
		"`URL` of the server, or once for each master of a quorum (see: holdfast help urls); default: the variable REDIS_URL")
	flags.StringVar(&c.TLS.CA, "tls-ca", "",
		"`FILE` with the certificates of the authorities that may sign that of the server")
	flags.StringVar(&c.TLS.Cert, "tls-cert", "", "`FILE` with the certificate of this client")
	flags.StringVar(&c.TLS.Key, "tls-key", "", "`FILE` with the key of that certificate")
	flags.StringVar(&c.Prefix, "prefix", "holdfast",
		"prefix of all keys and channels; locks with different prefixes are independent")
	if url := os.Getenv("REDIS_URL"); url != "" { // after the flag, whose help would show it
		c.Redis = url
	}
}

// Check notes what is wrong with the flags. It sends nothing and shows no password.
func (c *Connection) Check(list *Checklist) {
	list.Check(len(c.Prefix) <= MaxText && !strings.ContainsAny(c.Prefix, "{}"),
		"--prefix %q: it must have at most %d bytes, without { and }", c.Prefix, MaxText)
	err := server.Check(c.Redis, c.TLS)
	list.Check(err == nil, "--redis or REDIS_URL: %w", err)
	_, err = historyLimit()
	list.Check(err == nil, "%w", err)
	_, err = keepsKeys()
	list.Check(err == nil, "%w", err)
}

// NoEvictVariable says whether the server keeps the keys of locks from eviction, as Config.NoEvict.
const NoEvictVariable = "HOLDFAST_NO_EVICT"

func keepsKeys() (bool, error) {
	text := os.Getenv(NoEvictVariable)
	if text == "" {
		return false, nil
	}
	keeps, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s %q: it must be true or false", NoEvictVariable, text)
	}
	return keeps, nil
}

// HistoryVariable has about how many entries of its history the server keeps, as Config.History.
const HistoryVariable = "HOLDFAST_HISTORY"

const mostHistory = 1_000_000

func historyLimit() (int, error) {
	text := os.Getenv(HistoryVariable)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > mostHistory {
		return 0, fmt.Errorf("%s %q: it must be a number from 0 to %d", HistoryVariable, text, mostHistory)
	}
	return n, nil
}

// IsQuorum reports whether the servers are the masters of a quorum.
func (c *Connection) IsQuorum() bool { return server.Members(c.Redis) != nil }

// AddNameFlags adds the flags of the connection to a command whose first argument is a NAME, and
// completes that.
func (c *Connection) AddNameFlags(cmd *cobra.Command) {
	c.AddFlags(cmd)
	cmd.ValidArgsFunction = CompleteNames(c)
}

// Open is NewClient after a check of the flags. list has what else is wrong with the arguments.
func (c *Connection) Open(list Checklist, config holdfast.Config) (
	client *holdfast.Client, end func(), err error,
) {
	c.Check(&list)
	if err := list.Err(); err != nil {
		return nil, nil, err
	}
	return c.NewClient(config)
}

// NewClient makes a client with the prefix of the connection. It sends nothing. The caller calls
// end, which gives back what the client has and closes the connections.
func (c *Connection) NewClient(config holdfast.Config) (client *holdfast.Client, end func(), err error) {
	config.Prefix = c.Prefix
	if config.History, err = historyLimit(); err != nil {
		return nil, nil, Usagef("%w", err)
	}
	if config.NoEvict, err = keepsKeys(); err != nil {
		return nil, nil, Usagef("%w", err)
	}
	client, hangUp, err := server.Client(c.Redis, c.TLS, config)
	if err != nil {
		return nil, nil, Usagef("--redis or REDIS_URL: %w", err)
	}
	return client, func() {
		_ = client.Close() // also gives back what was given up, such as a place in the queue
		hangUp()
	}, nil
}

// Failure turns an error of a server into a text and an exit code. Other errors stay as they are.
func (c *Connection) Failure(err error) error {
	var (
		failed *holdfast.StoreError
		none   *holdfast.QuorumError
	)
	at := server.Redact(c.Redis)
	switch {
	case errors.As(err, &none):
		return ExitWith(ExitNoServer, err)
	case !errors.As(err, &failed):
		return err
	case failed.Kind == holdfast.StoreForeign:
		return Exitf(ExitNoServer, "the name is in use as something else at %s: %s: %w (take another name, or another --prefix)", at, failed.Kind, failed.Err)
	case failed.Kind == holdfast.StoreDenied && lacksPermission(failed.Err):
		return Exitf(ExitDenied, "the server at %s refuses this client: %w (holdfast doctor names all permissions that are missing)", at, failed.Err)
	case failed.Kind == holdfast.StoreDenied:
		return Exitf(ExitDenied, "the server at %s refuses this client: %w", at, failed.Err)
	case slices.Contains([]holdfast.StoreKind{holdfast.StoreUnreachable, holdfast.StoreNoAnswer, holdfast.StoreNotSent},
		failed.Kind):
		if hint := TLSHint(context.Background(), c.Redis); hint != "" {
			return Exitf(ExitNoServer, "no answer from %s: %s", at, hint)
		}
		return Exitf(ExitNoServer, "no answer from a server at %s: %w (--redis or REDIS_URL names another; holdfast dev is one to try)", at, failed.Err)
	}
	return Exitf(ExitNoServer, "the server at %s cannot serve: %s: %w", at, failed.Kind, failed.Err)
}

// lacksPermission reports whether a server knows the user, and refuses a command, a key or a
// channel.
func lacksPermission(err error) bool {
	return slices.ContainsFunc([]string{"NOPERM", "can't run this command", "ACL failure"},
		func(sign string) bool { return strings.Contains(err.Error(), sign) })
}

// DefaultURL is the server that no flag and no variable names.
const DefaultURL = "redis://127.0.0.1:6379"

// urls is a flag that is given once, or once for each master of a quorum.
type urls struct {
	to    *string
	given []string
}

// Set implements pflag.Value.
func (u *urls) Set(text string) error {
	if text == "" {
		return errors.New("the URL is empty")
	}
	u.given = append(u.given, text)
	*u.to = server.Quorum(u.given)
	return nil
}

// String implements pflag.Value.
func (u *urls) String() string { return *u.to }

// Type implements pflag.Value.
func (u *urls) Type() string { return "URL" }

// Operator names the user to those whose holds are broken.
func Operator() string {
	name := "holdfast"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return fmt.Sprintf("%.200s@%.200s", name, HostName())
}

// PortHint is a hint if an address is in use.
func PortHint(err error, hint string) string {
	if errors.Is(err, syscall.EADDRINUSE) {
		return hint
	}
	return ""
}

// HostName returns the name of this host for labels.
func HostName() string {
	if host, err := os.Hostname(); err == nil {
		return host
	}
	return "localhost"
}

// TLSHint says in words that one side speaks TLS and the other does not. It is empty if that is not
// so. A server that is spoken to in the wrong way hangs up, or waits for more, and says no more. So
// tlsHint connects once more and greets it in the other way. It sends no password.
func TLSHint(ctx context.Context, url string) string {
	address, encrypted := server.Address(url)
	if address == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	switch {
	case encrypted && speaksPlain(ctx, address):
		return "the server there speaks no TLS, and rediss:// is TLS: use redis://, or the port that speaks TLS"
	case !encrypted && speaksTLS(ctx, address):
		return "the server there speaks TLS, and redis:// does not: use rediss://, or a port without TLS"
	}
	return ""
}

// speaksPlain reports whether a server answers without TLS.
func speaksPlain(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	until, _ := ctx.Deadline()
	answer := make([]byte, 1)
	_ = conn.SetDeadline(until)
	_, _ = conn.Write([]byte("*1\r\n$4\r\nPING\r\n")) // the in-memory server reads no inline commands
	n, _ := conn.Read(answer)
	return n == 1 && (answer[0] == '+' || answer[0] == '-') // an answer, or an error: who are you?
}

// speaksTLS reports whether a server answers the greeting of TLS.
func speaksTLS(ctx context.Context, address string) bool {
	// Nothing is sent but the greeting, and the answer is not believed: any certificate will do.
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		conn.Close()
		return true
	}
	var ended *net.OpError // an alert of TLS: the server wants a certificate of the client
	return errors.As(err, &ended) && ended.Op == "remote error"
}
