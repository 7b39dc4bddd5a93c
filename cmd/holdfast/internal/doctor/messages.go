package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// messages checks that a message of one connection reaches another, as proxies may not carry it.
func (p *serverCheck) messages(ctx context.Context) {
	const check = "messages"
	const means = "locks work, but waiters learn of a free lock by asking, up to 5 s later, " +
		"and of one that a process retains at the end of its TTL"
	took, err := p.message(ctx)
	if err == nil {
		p.ok(check, "a message reached a second connection after "+took.Round(time.Microsecond).String())
		return
	}
	change := "let the proxy or the service carry publish and subscribe, or connect without it"
	if isAnswer(err) {
		change = "see permissions: subscribe and publish, and the pattern &" + p.real + ":* of channels"
	}
	p.add(Note, check, "no message reached a second connection: "+errorText(err), means, change)
}

// message publishes one message, and waits for it on another connection.
func (p *serverCheck) message(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	subscribe, publish := p.rdb.Subscribe, p.rdb.Publish
	if p.usesShardedChannels() {
		subscribe, publish = p.rdb.SSubscribe, p.rdb.SPublish
	}
	sub := subscribe(ctx, p.channel())
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := publish(ctx, p.channel(), "x").Err(); err != nil {
		return 0, err
	}
	for {
		msg, err := sub.Receive(ctx)
		if err != nil {
			return 0, fmt.Errorf("it was published and did not come: %w", err)
		}
		if _, ok := msg.(*redis.Message); ok {
			return time.Since(began), nil
		}
	}
}
