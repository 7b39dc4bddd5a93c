package main

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/lottery"
)

// introduce says what is going to happen.
func (d *Demo) introduce(name, where string) {
	rounds := fmt.Sprintf("%d rounds", d.Rounds)
	if d.Rounds == 1 {
		rounds = "1 round"
	}
	fmt.Fprintf(d.Out, "The noon lottery: %d processes, %s, and in every round exactly one may draw the winner.\n", d.Workers, rounds)
	if d.Without {
		fmt.Fprintf(d.Out, "Today WITHOUT the lock: each looks whether the round is drawn, and if not, draws.\n")
		return
	}
	fmt.Fprintf(d.Out, `They know nothing of each other. They share a lock, on %s
(%s).
Who holds it looks whether the round is drawn, and if not, draws. A lease lasts %v and is renewed while its holder
lives. Its token is larger than all before; the ledger of the draws takes none that is not.
`, name, where, d.TTL)
}

// conclude prints the summary and turns it into the exit code.
func (d *Demo) conclude(r *lottery.Result, err error) error {
	fmt.Fprintf(d.Out, "\nrounds          %d\n", r.Rounds)
	fmt.Fprintf(d.Out, "draws           %d\n", r.Draws)
	fmt.Fprintf(d.Out, "double draws    %d\n", r.Doubles)
	if !d.Without {
		fmt.Fprintf(d.Out, "tokens          %d leases, %s\n", r.Turns, grew(r))
		if n := len(r.HandOvers); n > 0 {
			fmt.Fprintf(d.Out, "hand-over       p50 %s, p99 %s, of %d: from a release to the next one's start\n",
				lottery.Round(r.HandOver(0.5)), lottery.Round(r.HandOver(0.99)), n)
		}
		for _, i := range r.Incidents {
			fmt.Fprintf(d.Out, "%-15s %s\n", titles[i.Trial], outcome(i))
		}
	}
	if err != nil {
		return fmt.Errorf("the lottery was not finished: %w", err)
	}
	if err := r.Err(); err != nil {
		if d.Without {
			return fmt.Errorf("without the lock it goes wrong: %w", err)
		}
		return fmt.Errorf("the lock did not keep its promise: %w", err)
	}
	if d.Without {
		return nil // it happens: nobody came second
	}
	fmt.Fprintf(d.Out, "\nEvery round had exactly one draw.\n")
	return nil
}

var titles = map[lottery.Trial]string{lottery.Stop: "stopped", lottery.Overstay: "max hold", lottery.Kill: "kill -9"}

// outcome says how a trial went.
func outcome(i lottery.Incident) string {
	if i.Took == 0 {
		return "nobody took over"
	}
	text := fmt.Sprintf("%s until the next one held the lock; allowed: %v", lottery.Round(i.Took), i.Allowed.Round(time.Millisecond))
	if i.Refused {
		text += "; its late draw was refused"
	}
	if i.Lost {
		text += "; it saw that it had lost"
	}
	return text
}

func grew(r *lottery.Result) string {
	if r.Backwards+r.Stale > 0 {
		return fmt.Sprintf("%d did not grow", r.Backwards+r.Stale)
	}
	return "each token larger than the one before"
}
