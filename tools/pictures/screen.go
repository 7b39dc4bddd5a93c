package main

import (
	"encoding/xml"
	"fmt"
	"image/color"
	"regexp"
	"strings"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// The measures of a picture, in pixels.
const (
	charWidth, lineHeight = 7.8, 18
	edge, titleHeight     = 16, 34
)

// colors are the classes of the colors that are drawn.
var colors = map[color.Color]string{
	nil: "", ansi.Red: "red", ansi.Green: "green", ansi.Yellow: "yellow", ansi.Blue: "blue",
	ansi.Magenta: "magenta", ansi.Cyan: "cyan",
}

// A span is text of one style within a line.
type span struct {
	class  string
	swaps  bool
	text   string
	column int
}

func spans(line uv.Line) (all []span, err error) {
	for column, cell := range line {
		next, err := newSpan(cell, column)
		if err != nil {
			return nil, err
		}
		if last := len(all) - 1; last >= 0 && all[last].class == next.class {
			all[last].text += next.text
		} else {
			all = append(all, next)
		}
	}
	return all, nil
}

func newSpan(cell uv.Cell, column int) (span, error) {
	style, classes := cell.Style, []string{}
	color, drawn := colors[style.Fg]
	const known = uv.AttrBold | uv.AttrFaint | uv.AttrReverse
	if !drawn || style.Bg != nil || style.Attrs&^known != 0 {
		return span{}, fmt.Errorf("a terminal that sets %q is not drawn", style.String())
	}
	faint := style.Attrs&uv.AttrFaint != 0
	swaps := style.Attrs&uv.AttrReverse != 0
	for _, c := range []struct {
		name string
		has  bool
	}{{"faint", faint}, {color, color != "" && !faint}, {"bold", style.Attrs&uv.AttrBold != 0},
		{"underline", style.Underline != uv.UnderlineNone}, {"swapped", swaps}} {
		if c.has {
			classes = append(classes, c.name)
		}
	}
	return span{strings.Join(classes, " "), swaps, cell.Content, column}, nil
}

const styleSheet = `
    text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #e6edf3; white-space: pre }
    .faint { fill: #9198a1 } .red { fill: #ff7b72 } .green { fill: #3fb950 } .yellow { fill: #d29922 }
    .blue { fill: #79c0ff } .magenta { fill: #d2a8ff } .cyan { fill: #56d4dd }
    .bold { font-weight: 600 } .underline { text-decoration: underline }
    text.swapped { fill: #0d1117 } rect.swapped { fill: #c9d1d9 }
`

// drawScreen is a screen of a terminal as an SVG.
func drawScreen(title, screen string) (string, error) {
	shown := uv.NewStyledString(strings.TrimRight(screen, "\n"))
	cells := uv.NewScreenBuffer(shown.WcWidth(), shown.Height())
	shown.Draw(cells, cells.Bounds())
	var body strings.Builder
	widest := utf8.RuneCountInString(title) + 12
	for row, line := range cells.Lines {
		all, err := spans(line)
		if err != nil {
			return "", err
		}
		for _, r := range all {
			widest = max(widest, r.column+utf8.RuneCountInString(strings.TrimRight(r.text, " ")))
			drawSpan(&body, r, titleHeight+edge/2+row*lineHeight)
		}
	}
	width, height := float64(widest)*charWidth+2*edge, titleHeight+edge+len(cells.Lines)*lineHeight
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&svg, "  <title>%s</title>\n  <style>%s  </style>\n", escaped(title), styleSheet)
	fmt.Fprintf(&svg, `  <rect x="0.5" y="0.5" width="%.0f" height="%d" rx="8" fill="#161b22" stroke="#484f58"/>`+"\n",
		width-1, height-1)
	for i, color := range []string{"#f85149", "#d29922", "#3fb950"} {
		fmt.Fprintf(&svg, `  <circle cx="%d" cy="17" r="5.5" fill="%s"/>`+"\n", 20+i*18, color)
	}
	fmt.Fprintf(&svg, `  <text class="faint" x="%.0f" y="21.5" text-anchor="middle">%s</text>`+"\n", width/2,
		escaped(title))
	fmt.Fprintf(&svg, "%s</svg>\n", body.String())
	return svg.String(), nil
}

// drawSpan draws a span in the line whose upper edge is at y. Each part has its width, so that
// columns stand below each other in any font. Blocks are rectangles: fonts draw them with gaps.
func drawSpan(to *strings.Builder, r span, y int) {
	if r.swaps {
		fmt.Fprintf(to, `  <rect class="swapped" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", x(r.column), y,
			float64(utf8.RuneCountInString(r.text))*charWidth, lineHeight)
	}
	for _, part := range regexp.MustCompile(`█+|░+|[^█░]+`).FindAllString(r.text, -1) {
		n := utf8.RuneCountInString(part)
		column := r.column
		r.column += n
		switch shown := strings.TrimRight(part, " "); {
		case strings.HasPrefix(part, "█"):
			fmt.Fprintf(to, `  <rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", r.class, x(column), y+3,
				float64(n)*charWidth, lineHeight-6)
		case strings.HasPrefix(part, "░"):
			fmt.Fprintf(to, `  <rect fill="#30363d" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", x(column), y+3,
				float64(n)*charWidth, lineHeight-6)
		case shown != "":
			lead := utf8.RuneCountInString(shown) - utf8.RuneCountInString(strings.TrimLeft(shown, " "))
			text := strings.TrimLeft(shown, " ")
			fmt.Fprintf(to, `  <text class="%s" x="%.1f" y="%d" textLength="%.1f">%s</text>`+"\n",
				r.class, x(column+lead), y+13, float64(utf8.RuneCountInString(text))*charWidth, escaped(text))
		}
	}
}

func x(column int) float64 { return edge + float64(column)*charWidth }

func escaped(text string) string {
	var out strings.Builder
	if err := xml.EscapeText(&out, []byte(text)); err != nil {
		return ""
	}
	return out.String()
}
