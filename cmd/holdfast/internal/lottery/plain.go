package lottery

import (
	"fmt"
	"io"
	"time"
)

// Plain shows what happens as lines of text.
func Plain(w io.Writer) View {
	return func(e Event) {
		switch e.Kind {
		case Opened:
			fmt.Fprintf(w, "\nround %-3d %s\n", e.Round, opened(e))
		case Entered:
			if e.Token == 0 {
				line(w, e, "looks: not drawn yet")
				break
			}
			line(w, e, "holds the lock, token %d", e.Token)
		case Killed:
			line(w, e, "is killed with -9, before it draws. Its lease counts for up to %v more; the others wait", e.Took)
		case TookOver:
			line(w, e, "takes over %s after %s, token %d", Round(e.Took), e.Trial, e.Token)
		case Stopped:
			line(w, e, "is stopped before it draws, and cannot renew. Its lease counts for up to %v more; the others wait", e.Took)
		case Dawdles:
			line(w, e, "takes its time, and renews. But the lock may be held for %v at most; the others wait", e.Took)
		case Continued:
			line(w, e, "goes on where it was stopped, and draws without looking at its lease")
		case Late:
			line(w, e, "draws late: REFUSED by the ledger, %s", e.Text)
		case Drawn:
			line(w, e, "draws: ticket %04d wins", e.Ticket)
		case Refused:
			line(w, e, "wants to draw TOO: REFUSED, %s", e.Text)
		case Lost:
			line(w, e, "is told that its lease is lost: %s", e.Text)
		case Closed:
			if e.Others > 0 && e.Took > 0 {
				fmt.Fprintf(w, "          %d others in turn hold it, see that it is drawn, and leave; hand-over %s\n", e.Others, Round(e.Took))
			}
		case Problem:
			line(w, e, "PROBLEM: %s", e.Text)
		}
	}
}

func opened(e Event) string {
	if e.Others == 1 {
		return "1 process wants to draw"
	}
	return fmt.Sprintf("%d processes want to draw", e.Others)
}

func line(w io.Writer, e Event, format string, args ...any) {
	fmt.Fprintf(w, "          worker %-2d %s\n", e.Worker, fmt.Sprintf(format, args...))
}

// Round is a duration with as many digits as one can read.
func Round(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	default:
		return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
	}
}
