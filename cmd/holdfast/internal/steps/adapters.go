package steps

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
)

// redis makes a client of a server of the role, with the defaults of go-redis, that reports its
// commands.
func (a *actor) redis(n int) *redis.Client {
	rdb := a.quiet(n)
	rdb.AddHook(commands{a})
	return rdb
}

// quiet is such a client that reports nothing. Its connections have the name of the process.
func (a *actor) quiet(n int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: a.role.Addrs[n], ClientName: a.role.Name})
}

// commands reports the commands of a client and their answers.
type commands struct{ actor *actor }

func (commands) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next // go-redis greets each server with a pipeline
}

func (c commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() != "hello" && cmd.Name() != "client" { // the greeting of a connection
			c.actor.line("%s", sent(cmd))
		}
		return err
	}
}

// sent is a command and its answer, for people. A script is shown by its first line, a comment.
func sent(cmd redis.Cmder) string {
	args := cmd.Args()
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = fmt.Sprint(arg)
	}
	words[0] = strings.ToUpper(words[0])
	switch words[0] {
	case "EVAL":
		first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(words[1]), "-- "), "\n")
		words = append([]string{"EVAL", "'" + first + "'"}, words[3:]...)
	case "SET":
		for i := 3; i < len(words); i++ {
			words[i] = strings.ToUpper(words[i])
		}
	}
	return strings.Join(words, " ") + " -> " + answerOf(cmd)
}

func answerOf(cmd redis.Cmder) string {
	err := cmd.Err()
	switch cmd := cmd.(type) {
	case *redis.BoolCmd:
		switch set := cmd.Args()[0] == "set"; {
		case err != nil:
		case set && cmd.Val():
			return "OK"
		case set:
			return "nil"
		case cmd.Val():
			return "1"
		default:
			return "0"
		}
	case interface{ Val() string }:
		if err == nil {
			return cmd.Val()
		}
	case interface{ Val() int64 }:
		if err == nil {
			return reply(cmd.Val())
		}
	case *redis.Cmd:
		if err == nil {
			return reply(cmd.Val())
		}
	}
	if errors.Is(err, redis.Nil) {
		return "nil"
	}
	return fmt.Sprintf("error: %v", err)
}

// A naiveLock is a lock of package naive as a process uses it.
type naiveLock struct {
	actor *actor
	lock  tryLocker
}

// A tryLocker is what all locks of package naive have.
type tryLocker interface {
	TryLock(context.Context) (bool, error)
	Unlock(context.Context) error
}

func (a *actor) naive(l tryLocker) lock { return &naiveLock{a, l} }

func (l *naiveLock) try(ctx context.Context) (bool, error) { return l.lock.TryLock(ctx) }

// wait tries again and again, as a tutorial says, unless the lock itself knows how to wait.
func (l *naiveLock) wait(ctx context.Context) error {
	if waiter, ok := l.lock.(interface{ Lock(context.Context) error }); ok {
		return waiter.Lock(ctx)
	}
	for {
		if ok, err := l.lock.TryLock(ctx); ok || err != nil {
			return err
		}
		select {
		case <-time.After(l.actor.role.Every):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *naiveLock) release(ctx context.Context) error { return l.lock.Unlock(ctx) }

func (l *naiveLock) token() int64 { return 0 }

// mayWork asks a lock that has a watchdog. The others never know.
func (l *naiveLock) mayWork() error {
	if watched, ok := l.lock.(interface{ Err() error }); ok {
		return watched.Err()
	}
	return nil
}

func (l *naiveLock) write(ctx context.Context) error { return nil }

// A holdfastLock is a mutex of the library as a process uses it.
type holdfastLock struct {
	actor *actor
	mutex *holdfast.Mutex
	lease *holdfast.Lease
}

func (a *actor) holdfast(options ...holdfast.Option) (lock, error) {
	client, err := holdfast.New(redisstore.New(a.quiet(0)), a.holdfastConfig())
	if err != nil {
		return nil, err
	}
	return &holdfastLock{actor: a, mutex: client.Mutex(lockName, options...)}, nil
}

func (a *actor) holdfastConfig() *holdfast.Config {
	return &holdfast.Config{Label: a.role.Name, TTL: ttl}
}

func (l *holdfastLock) try(ctx context.Context) (bool, error) {
	lease, err := l.mutex.TryLock(ctx)
	var held *holdfast.HeldError
	if errors.As(err, &held) {
		l.actor.line("TryLock -> held by %s", held.Holder)
		return false, nil
	}
	return l.entered("TryLock", lease, err)
}

func (l *holdfastLock) wait(ctx context.Context) error {
	l.actor.line("Lock ...")
	lease, err := l.mutex.Lock(ctx)
	_, err = l.entered("Lock", lease, err)
	return err
}

func (l *holdfastLock) entered(call string, lease *holdfast.Lease, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	l.lease = lease
	l.actor.line("%s -> lease with token %d", call, lease.Token())
	return true, nil
}

func (l *holdfastLock) release(ctx context.Context) error {
	err := l.lease.Release(ctx)
	if errors.Is(err, holdfast.ErrLost) {
		l.actor.line("Release -> %s", short(err))
		return nil
	}
	if err == nil {
		l.actor.line("Release -> ok")
	}
	return err
}

func (l *holdfastLock) token() int64 { return l.lease.Token() }

func (l *holdfastLock) mayWork() error {
	if err := l.lease.Err(); err != nil {
		return errors.New(short(err))
	}
	return nil
}

func (l *holdfastLock) write(ctx context.Context) error { return nil }

// short is an error of a lease without the name of the lock, which is always the same.
func short(err error) string {
	var lost *holdfast.LostError
	if errors.As(err, &lost) {
		return fmt.Sprintf("the lease is lost, %s", lost.Reason)
	}
	return err.Error()
}
