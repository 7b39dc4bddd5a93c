package history

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
)

//go:embed draw.html
var drawing string

var drawingTemplate = template.Must(template.New("history").Parse(drawing))

// A bar is a time on the drawing, in milliseconds.
type bar struct {
	From, Long float64
	Row        int
	Class      string
	Text       string
}

type track struct {
	Name string
	Rows int
	Bars []bar
	free []int64 // until when each row is taken
}

// A page is the drawing.
type page struct {
	Long       float64
	Lanes      []*track
	Violations []Violation

	origin, end int64
	lanes       map[string]*track
}

func (p *page) millis(at int64) float64 { return float64(min(max(at, p.origin), p.end)-p.origin) / 1e6 }

// addBar draws a bar in the first row of its track that has room.
func (p *page) addBar(name, class, text string, from, to int64) {
	lane := p.lanes[name]
	if lane == nil {
		lane = &track{Name: name}
		p.lanes[name] = lane
	}
	row := slices.IndexFunc(lane.free, func(until int64) bool { return until <= from })
	if row < 0 {
		row = lane.Rows
		lane.Rows++
		lane.free = append(lane.free, 0)
	}
	lane.free[row] = to
	long := max(p.millis(to)-p.millis(from), 0.05)
	lane.Bars = append(lane.Bars, bar{p.millis(from), long, row, class, text})
}

// Draw writes the history as one page of HTML that needs nothing else: a track for each name, with
// the waits (from a call to its return) and the trusted holds in it, a track of faults, and the
// violations as marks with their text.
func Draw(w io.Writer, h *History, violations []Violation) error {
	if len(h.Records) == 0 {
		return nil
	}
	p := &page{
		Violations: violations,
		origin:     h.Records[0].At, end: h.Records[len(h.Records)-1].At,
		lanes: map[string]*track{},
	}
	p.Long = p.millis(p.end)
	p.addHolds(h)
	p.addWaits(h)
	p.addFaults(h)
	for _, v := range violations {
		p.addBar(v.Name, "broken", v.String(), v.completedAt(), v.completedAt()+1e6)
	}
	for _, name := range slices.Sorted(maps.Keys(p.lanes)) {
		p.Lanes = append(p.Lanes, p.lanes[name])
	}
	if err := drawingTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("history: draw: %w", err)
	}
	return nil
}

func (p *page) addHolds(h *History) {
	for _, hold := range h.Holds {
		class := "writes"
		if hold.Shares || hold.Weight > 0 {
			class = "shares"
		}
		if hold.isTrusted() {
			text := fmt.Sprintf("%s, ended by %s\n%s", hold.ID, hold.Cause, hold.Lock.Format(p.origin))
			p.addBar(hold.Name, class, text, hold.Start, hold.End)
		}
	}
}

func (p *page) addWaits(h *History) {
	for _, op := range h.Ops {
		if op.Return == nil || op.Call.Kind != Lock && op.Call.Kind != Wait {
			continue
		}
		for _, name := range op.Call.names() {
			text := op.Call.Format(p.origin) + "\n" + op.Return.Format(p.origin)
			p.addBar(name, "waits", text, op.Call.At, op.Return.At)
		}
	}
}

func (p *page) addFaults(h *History) {
	for _, faults := range []map[string][]span{h.stops, h.stalls, h.mutes} {
		for _, proc := range slices.Sorted(maps.Keys(faults)) {
			for _, s := range faults[proc] {
				p.addBar(" faults", "fault", proc+" stood still, or its network did", s.from, s.to)
			}
		}
	}
	for _, proc := range slices.Sorted(maps.Keys(h.kills)) {
		p.addBar(" faults", "kill", proc+" killed", h.kills[proc], h.kills[proc]+1e6)
	}
}
