package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// defaultTTL is the TTL of a client whose Config says nothing.
const defaultTTL = 15 * time.Second

// The drawing docs/lease.svg is made of the times of this package, with the words of its glossary.
// UPDATE_DRAWING=1 writes it.
func TestDrawingOfALeaseHasTheTimesOfTheEngine(t *testing.T) {
	file, want := filepath.Join("..", "..", "docs", "lease.svg"), drawLease(defaultTTL)
	if os.Getenv("UPDATE_DRAWING") != "" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || strings.ReplaceAll(string(got), "\r\n", "\n") != want {
		t.Errorf("docs/lease.svg is not what these times make, %v: make pictures writes it", err)
	}
}

// A drawing grows from top to bottom. Its panels have three lanes and a time axis.
type drawing struct {
	strings.Builder
	top   float64                       // of the panel
	scale func(t time.Duration) float64 // where a moment is
}

const (
	drawingWidth = 880
	laneLeft     = 96.0 // where a panel begins, beside the names of its lanes
	laneRight    = 860.0
	barHeight    = 26
	holderLane   = 62 // below the top of the panel, as the others
	serverLane   = 126
	waiterLane   = 190
	axis         = 234
	panelHeight  = 288
)

const drawingStyle = `
    svg { --ground: #ffffff; --edge: #d0d7de; --ink: #1f2328; --faint: #59636e; --trust: #2da44e; --hold: #0969da; --wait: #d8dee4; --band: #fff1e5; --loss: #bc4c00; --on: #ffffff }
    @media (prefers-color-scheme: dark) {
      svg { --ground: #161b22; --edge: #484f58; --ink: #e6edf3; --faint: #9198a1; --trust: #238636; --hold: #1f6feb; --wait: #373e47; --band: #3d2b1f; --loss: #ffa657; --on: #ffffff }
    }
    text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: var(--ink) }
    .head { font-size: 15px; font-weight: 600 } .faint { fill: var(--faint) } .loss { fill: var(--loss); font-weight: 600 }
    .on { fill: var(--on); font-weight: 600 } .name { font-weight: 600 }
    .trust { fill: var(--trust) } .hold { fill: var(--hold) } .wait { fill: var(--wait) } .band { fill: var(--band) }
    line { stroke: var(--ink) } line.faint { stroke: var(--faint) } line.loss { stroke: var(--loss); stroke-dasharray: 4 3 }
    line.claim { stroke: var(--loss) }
`

// drawLease draws the two ways in which a lease ends: its holder goes silent, or gives it back.
func drawLease(ttl time.Duration) string {
	d := &drawing{}
	d.silent(ttl)
	d.top += panelHeight + 6
	d.handOver(ttl)
	height := d.top + panelHeight
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" role="img">
  <title>The life of a lease: trust, margin, hand-over and claim</title>
  <style>%s  </style>
  <rect x="0.5" y="0.5" width="%d" height="%.0f" rx="8" style="fill: var(--ground); stroke: var(--edge)"/>
`, drawingWidth, height, drawingWidth, height, drawingStyle, drawingWidth-1, height-1)
	return head + d.String() + "</svg>\n"
}

// silent: the holder is cut off after its second renewal.
func (d *drawing) silent(ttl time.Duration) {
	step := renewalDelay(ttl, ttl)
	lastSent := 2 * step
	trustEnds, expiry := lastSent+ttl-margin(ttl), lastSent+ttl
	cut, joined, end := lastSent+step*3/5, step*3/5, expiry+step
	const wide = 10 // the margin is drawn so many times as wide as it is
	perSecond := (laneRight - laneLeft) / (end + (wide-1)*margin(ttl)).Seconds()
	d.scale = func(t time.Duration) float64 {
		shown := t + (wide-1)*max(min(t, expiry)-trustEnds, 0)
		return laneLeft + shown.Seconds()*perSecond
	}
	d.panel(fmt.Sprintf("The holder goes silent: trust ends before the hold does (TTL %s, renewed every %s)",
		spaced(ttl), spaced(step)))
	d.rect("band", trustEnds, expiry, holderLane-32, axis-holderLane+32)
	d.lanes()

	d.bar("trust", 0, trustEnds, holderLane, "trust: A may act on its lease")
	d.bar("hold", 0, expiry, serverLane, "hold of A")
	d.bar("hold", expiry, end, serverLane, "hold of B")
	d.bar("wait", joined, expiry, waiterLane, "B waits in the queue")
	d.bar("trust", expiry, end, waiterLane, "trust")

	d.arrow(0, holderLane+barHeight, serverLane, "grant", "")
	d.arrow(step, holderLane+barHeight, serverLane, "renewal", "")
	d.arrow(2*step, holderLane+barHeight, serverLane, "renewal", "")
	d.line("loss", cut, holderLane+barHeight, cut, serverLane)
	d.text("loss", cut, (holderLane+barHeight+serverLane)/2+5, 8, "start", "A is cut off: its renewals get no answer")
	d.text("loss", trustEnds, holderLane-12, -6, "end", "trust ends: the context of the lease ends")
	d.text("faint", expiry, holderLane-12, 6, "start", "margin: "+spaced(margin(ttl)))
	d.arrow(expiry, waiterLane, serverLane+barHeight, "B asks: grant", "")
	d.ticks(step, end)
	d.text("faint", end, axis+34, 0, "end", fmt.Sprintf("the margin is drawn %d times as wide as it is", wide))
}

// handOver: the holder releases while another waits.
func (d *drawing) handOver(ttl time.Duration) {
	c := claim(ttl)
	first := renewalDelay(c, ttl)
	begin, end := -c*2/5, c*6/5
	arrives := first / 5 // anything: a message has no promised time
	d.scale = func(t time.Duration) float64 {
		return laneLeft + (laneRight-laneLeft)*(t-begin).Seconds()/(end-begin).Seconds()
	}
	d.panel(fmt.Sprintf("The holder releases: a hand-over, which the waiter takes up within the claim (%s)", spaced(c)))
	d.lanes()
	d.bar("trust", begin, 0, holderLane, "trust")
	d.bar("hold", begin, 0, serverLane, "hold of A")
	d.bar("hold", 0, end, serverLane, "hold of B, with a larger fencing token")
	d.bar("wait", begin, arrives, waiterLane, "B waits")
	d.bar("trust", arrives, end, waiterLane, "trust: B may act on its lease")

	d.arrow(0, holderLane+barHeight, serverLane, "", "release")
	d.arrow(arrives, serverLane+barHeight, waiterLane, "", "message")
	d.arrow(first, waiterLane, serverLane+barHeight, fmt.Sprintf("first renewal, after %s: the hold now lasts a TTL",
		spaced(first)), "")
	d.line("claim", 0, serverLane-9, c, serverLane-9)
	d.line("claim", 0, serverLane-13, 0, serverLane-5)
	d.line("claim", c, serverLane-13, c, serverLane-5)
	d.text("loss", c/2, serverLane-15, 0, "middle", "claim: "+spaced(c))
	d.ticks(c/5, end)
	d.text("faint", end, axis+34, 0, "end", "a hand-over that is not taken up within the claim goes to the next waiter")
}

func (d *drawing) panel(heading string) {
	fmt.Fprintf(d, `  <text class="head" x="20" y="%.0f">%s</text>`+"\n", d.top+26, heading)
}

func (d *drawing) lanes() {
	for _, lane := range []struct {
		name string
		y    float64
	}{{"holder A", holderLane}, {"server", serverLane}, {"waiter B", waiterLane}} {
		fmt.Fprintf(d, `  <text class="name" x="20" y="%.0f">%s</text>`+"\n", d.top+lane.y+18, lane.name)
	}
}

func (d *drawing) rect(class string, from, to time.Duration, y, height float64) {
	fmt.Fprintf(d, `  <rect class="%s" x="%.1f" y="%.0f" width="%.1f" height="%.0f"/>`+"\n", class, d.scale(from),
		d.top+y, d.scale(to)-d.scale(from), height)
}

// bar is a rectangle in a lane, with a text in its middle.
func (d *drawing) bar(class string, from, to time.Duration, lane float64, text string) {
	d.rect(class, from, to, lane, barHeight)
	on := "on"
	if class == "wait" {
		on = "name"
	}
	fmt.Fprintf(d, `  <text class="%s" x="%.1f" y="%.0f" text-anchor="middle">%s</text>`+"\n", on,
		(d.scale(from)+d.scale(to))/2, d.top+lane+18, text)
}

func (d *drawing) line(class string, from time.Duration, y1 float64, to time.Duration, y2 float64) {
	fmt.Fprintf(d, `  <line class="%s" x1="%.1f" y1="%.0f" x2="%.1f" y2="%.0f" stroke-width="1.5"/>`+"\n", class,
		d.scale(from), d.top+y1, d.scale(to), d.top+y2)
}

// arrow is a request or a message between two lanes, with a text on its right or its left.
func (d *drawing) arrow(at time.Duration, from, to float64, right, left string) {
	tip := 7.0
	if to > from {
		tip = -tip
	}
	d.line("", at, from, at, to+tip)
	fmt.Fprintf(d, `  <path d="M %.1f %.0f l -4.5 %.0f h 9 z" style="fill: var(--ink)"/>`+"\n", d.scale(at), d.top+to,
		tip)
	y := (from+to)/2 + 5
	if right != "" {
		d.text("", at, y, 8, "start", right)
	}
	if left != "" {
		d.text("", at, y, -8, "end", left)
	}
}

func (d *drawing) text(class string, at time.Duration, y, beside float64, anchor, text string) {
	fmt.Fprintf(d, `  <text class="%s" x="%.1f" y="%.0f" text-anchor="%s">%s</text>`+"\n", class, d.scale(at)+beside,
		d.top+y, anchor, text)
}

func (d *drawing) ticks(every, end time.Duration) {
	fmt.Fprintf(d, `  <line class="faint" x1="%.1f" y1="%.0f" x2="%.1f" y2="%.0f"/>`+"\n", laneLeft, d.top+axis,
		laneRight, d.top+axis)
	for t := time.Duration(0); t < end; t += every {
		d.line("faint", t, axis, t, axis+5)
		d.text("faint", t, axis+19, 0, "middle", spaced(t))
	}
}

// spaced is a duration as the pages write it: 15 s.
func spaced(t time.Duration) string {
	return regexp.MustCompile(`[a-z]+`).ReplaceAllString(t.String(), " $0")
}
