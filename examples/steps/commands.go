package main

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
	rdb := a.quietRedis(n)
	prefix := ""
	if len(a.role.Addrs) > 1 {
		prefix = fmt.Sprintf("master %d: ", n+1)
	}
	rdb.AddHook(reporter{a, prefix})
	return rdb
}

// quietRedis is such a client that reports nothing. Its connections have the name of the process,
// by which the server counts its commands.
func (a *actor) quietRedis(n int) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: a.role.Addrs[n], ClientName: a.role.Name})
	a.closers = append(a.closers, rdb)
	return rdb
}

// A reporter reports the commands of a client and their answers.
type reporter struct {
	actor  *actor
	prefix string // names the server, if there are several
}

func (reporter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (reporter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next // go-redis greets each server with a pipeline
}

func (r reporter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() != "hello" && cmd.Name() != "client" { // the greeting of a connection
			r.actor.line("%s%s -> %s", r.prefix, formatCommand(cmd.Args()), formatAnswer(cmd))
		}
		return err
	}
}

// formatCommand is a command for people. A script is shown by its first line, a comment.
func formatCommand(args []any) string {
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
	return strings.Join(words, " ")
}

// formatAnswer is the answer to a command for people, as redis-cli would show it.
func formatAnswer(cmd redis.Cmder) string {
	switch err := cmd.Err(); {
	case errors.Is(err, redis.Nil):
		return "nil"
	case err != nil:
		return fmt.Sprintf("error: %v", err)
	}
	switch cmd := cmd.(type) {
	case *redis.BoolCmd:
		answers := map[bool]string{true: "1", false: "0"}
		if cmd.Name() == "set" {
			answers = map[bool]string{true: "OK", false: "nil"}
		}
		return answers[cmd.Val()]
	case interface{ Val() string }:
		return cmd.Val()
	case interface{ Val() int64 }:
		return formatReply(cmd.Val())
	case *redis.Cmd:
		return formatReply(cmd.Val())
	}
	return "?"
}

// formatReply is the reply of a server for people.
func formatReply(value any) string {
	if value == nil {
		return "nil"
	}
	return fmt.Sprint(value)
}
