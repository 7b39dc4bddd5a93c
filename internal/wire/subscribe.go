package wire

import (
	"context"
	"time"
)

const (
	subscribeTimeout = 2 * time.Second // of one try
	subscribeAgain   = time.Second     // after a try that failed
)

// open subscribes to one channel. The error is one of SubscribeFailure, and then nothing is open.
func open(ctx context.Context, s Store, channel string, sink Sink) (Subscription, error) {
	subscription, err := s.Subscribe(ctx, sink)
	if err == nil {
		if err = subscription.Add(ctx, channel); err == nil {
			return subscription, nil
		}
		_ = subscription.Close()
	}
	return nil, SubscribeFailure(channel, err)
}

// Subscribe is subscribed to one channel until ctx ends. It tries again while that fails, and then
// tells the sink of a gap. It calls first with the outcome of the first try.
func Subscribe(ctx context.Context, s Store, channel string, sink Sink, first func(error)) {
	for again := false; ; again = true {
		try, cancel := context.WithTimeout(ctx, subscribeTimeout)
		subscription, err := open(try, s, channel, sink)
		cancel()
		if !again {
			first(err)
		}
		if err == nil {
			if again {
				sink.Gap()
			}
			<-ctx.Done()
			_ = subscription.Close()
			return
		}
		timer := time.NewTimer(subscribeAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
