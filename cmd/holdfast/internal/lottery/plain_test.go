package lottery

import (
	"strings"
	"testing"
	"time"
)

func TestPlain(t *testing.T) {
	var out strings.Builder
	view := Plain(&out)
	for _, e := range []Event{
		{Kind: Opened, Round: 5, Others: 8},
		{Kind: Entered, Round: 5, Worker: 3, Token: 33},
		{Kind: Killed, Round: 5, Worker: 3, Took: 2 * time.Second},
		{Kind: TookOver, Round: 5, Worker: 12, Token: 34, Took: 1990 * time.Millisecond, Trial: Kill},
		{Kind: Drawn, Round: 5, Worker: 12, Token: 34, Ticket: 42},
		{Kind: Refused, Round: 5, Worker: 1, Token: 30, Text: "round 5 was drawn by worker 12"},
		{Kind: Lost, Round: 5, Worker: 1, Text: "too late"},
		{Kind: Problem, Round: 5, Worker: 2, Text: "no server"},
		{Kind: Closed, Round: 5, Others: 6, Took: 210 * time.Microsecond},
		{Kind: Opened, Round: 6, Others: 1},
		{Kind: Entered, Round: 6, Worker: 4},
		{Kind: Closed, Round: 6},
	} {
		view(e)
	}
	want := `
round 5   8 processes want to draw
          worker 3  holds the lock, token 33
          worker 3  is killed with -9, before it draws. Its lease counts for up to 2s more; the others wait
          worker 12 takes over 1.99 s after the kill, token 34
          worker 12 draws: ticket 0042 wins
          worker 1  wants to draw TOO: REFUSED, round 5 was drawn by worker 12
          worker 1  is told that its lease is lost: too late
          worker 2  PROBLEM: no server
          6 others in turn hold it, see that it is drawn, and leave; hand-over 0.21 ms

round 6   1 process wants to draw
          worker 4  looks: not drawn yet
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
