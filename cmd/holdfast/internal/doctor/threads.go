package doctor

import (
	"context"
	"fmt"
	"time"
)

// busyAt is the share of the main thread's time from which on a server is called busy.
const busyAt = 0.7

// threads tells how the server uses threads. No lock depends on it.
func (p *serverCheck) threads(ctx context.Context) {
	const check = "io-threads"
	n, err := p.config(ctx, "io-threads")
	if err != nil {
		n = "not told: " + errorText(err)
	}
	p.note(err == nil, check, n, "no lock depends on it", "")
}

// shortest is how many seconds a look at the main thread lasts at least: less says nothing.
const shortest = 0.1

// checkMainThread reports whether the main thread, which runs all scripts, is near its limit.
func (p *serverCheck) checkMainThread(ctx context.Context) {
	const check = "load"
	before, window := p.info.mainThread(), time.Since(p.began).Seconds()
	info, err := p.askInfo(ctx, "cpu")
	after := info.mainThread()
	if err != nil || before < 0 || after < 0 || window < shortest {
		return // an old server, one that does not say, or too short a look; nothing depends on it
	}
	share := (after - before) / window
	p.note(share < busyAt, check, fmt.Sprintf("the main thread was busy for %.0f %% of %.1f s", 100*share, window),
		"all scripts run there: renewals wait behind other work", "io-threads 4, if the machine has more cores, or a server of its own for the locks")
}

// mainThread is the time in seconds that the main thread has used; -1 if that is not known.
func (i infoText) mainThread() float64 {
	system, user := i.seconds("used_cpu_sys_main_thread"), i.seconds("used_cpu_user_main_thread")
	if system < 0 || user < 0 {
		return -1
	}
	return system + user
}
