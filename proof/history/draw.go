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

type lane struct {
	Name string
	Rows int
	Bars []bar
}

// Draw writes the history as one page of HTML that needs nothing else: a lane for each name, with the waits (from a call to
// its return) and the trusted holds in it, a lane of faults, and the violations as marks with their text.
func Draw(w io.Writer, h *History, violations []Violation) error {
	if len(h.Records) == 0 {
		return nil
	}
	origin, end := h.Records[0].At, h.Records[len(h.Records)-1].At
	millis := func(at int64) float64 { return float64(min(max(at, origin), end)-origin) / 1e6 }
	lanes := map[string]*lane{}
	free := map[string][]int64{} // until when the rows of a lane are taken
	add := func(name, class, text string, from, to int64) {
		if lanes[name] == nil {
			lanes[name] = &lane{Name: name}
		}
		row := slices.IndexFunc(free[name], func(until int64) bool { return until <= from })
		if row < 0 {
			row = len(free[name])
			free[name] = append(free[name], 0)
			lanes[name].Rows = row + 1
		}
		free[name][row] = to
		lanes[name].Bars = append(lanes[name].Bars, bar{millis(from), max(millis(to)-millis(from), 0.05), row, class, text})
	}
	for _, hold := range h.Holds {
		class := "writes"
		if hold.Shares || hold.Weight > 0 {
			class = "shares"
		}
		text := fmt.Sprintf("%s, ended by %s\n%s", hold.ID, hold.Cause, hold.Lock.Format(origin))
		if hold.trusted() {
			add(hold.Name, class, text, hold.Start, hold.End)
		}
	}
	for _, op := range h.Ops {
		if op.Return == nil || op.Call.Kind != Lock && op.Call.Kind != Wait {
			continue
		}
		names := op.Call.Names
		if op.Call.Name != "" {
			names = []string{op.Call.Name}
		}
		for _, name := range names {
			add(name, "waits", op.Call.Format(origin)+"\n"+op.Return.Format(origin), op.Call.At, op.Return.At)
		}
	}
	for _, faults := range []map[string][]span{h.stops, h.stalls, h.mutes} {
		for _, proc := range slices.Sorted(maps.Keys(faults)) {
			for _, s := range faults[proc] {
				add(" faults", "fault", proc+" stood still, or its network did", s.from, s.to)
			}
		}
	}
	for _, proc := range slices.Sorted(maps.Keys(h.kills)) {
		add(" faults", "kill", proc+" killed", h.kills[proc], h.kills[proc]+1e6)
	}
	for _, v := range violations {
		add(v.Name, "broken", v.String(), v.at(), v.at()+1e6)
	}
	page := struct {
		Long       float64
		Lanes      []*lane
		Violations []Violation
	}{Long: millis(end), Violations: violations}
	for _, name := range slices.Sorted(maps.Keys(lanes)) {
		page.Lanes = append(page.Lanes, lanes[name])
	}
	if err := drawingTemplate.Execute(w, page); err != nil {
		return fmt.Errorf("history: draw: %w", err)
	}
	return nil
}
