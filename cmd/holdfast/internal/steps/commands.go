package steps

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// redis makes a client of a server of the role, with the defaults of go-redis, that reports its
// commands.
func (a *actor) redis(n int) *redis.Client {
	rdb := a.quiet(n)
	rdb.AddHook(commands{a, n})
	return rdb
}

// quiet is such a client that reports nothing. Its connections have the name of the process, by
// which the server counts its commands.
func (a *actor) quiet(n int) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: a.role.Addrs[n], ClientName: a.role.Name})
	a.clients = append(a.clients, rdb)
	return rdb
}

// commands reports the commands of a client and their answers.
type commands struct {
	actor  *actor
	server int // of several
}

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
			c.actor.line("%s%s", c.where(), sent(cmd))
		}
		return err
	}
}

// where names the server, if there are several.
func (c commands) where() string {
	if len(c.actor.role.Addrs) == 1 {
		return ""
	}
	return fmt.Sprintf("master %d: ", c.server+1)
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
